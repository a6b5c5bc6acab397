import { join } from 'node:path';
import { defineConfig } from 'vitest/config';
import { REPOSITORY } from '../vm/repository.ts';

export default defineConfig({
  test: {
    root: REPOSITORY,
    include: ['test/kubectl/**/*.api.test.ts'],
    globalSetup: [join(import.meta.dirname, 'package-plugin.ts')],
    // Every command starts two programs, on a machine that may be busy.
    testTimeout: 60_000,
    hookTimeout: 180_000,
    // A control plane each, which waits most of the time.
    maxWorkers: 2,
  },
});
