import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      '{api,certs,kube,rpc,telemetry,agent,controller,debugger,kubectl-plugin,images,test}/**/*.test.ts',
    ],
    exclude: [
      '**/node_modules/**',
      '**/build/**',
      // What another ring runs says which: `.guest`, `.api`, `.chart` and so on.
      '**/*.*.test.ts',
    ],
    testTimeout: 20_000,
    // One less than there are processors is one here, and tests wait half of the time.
    maxWorkers: 2,
  },
});
