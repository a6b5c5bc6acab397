import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: [
      '{api,certs,kube,rpc,telemetry,agent,controller,debugger,kubectl-plugin,images,test}/**/*.test.ts',
    ],
    exclude: [
      '**/node_modules/**',
      '**/build/**',
      '**/*.guest.test.ts',
      '**/*.api.test.ts',
      '**/*.e2e.test.ts',
      '**/*.image.test.ts',
      '**/*.nri.test.ts',
      '**/*.telemetry.test.ts',
    ],
    testTimeout: 20_000,
  },
});
