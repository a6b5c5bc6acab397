import { defineConfig } from 'vitest/config';
import { REPOSITORY } from '../vm/repository.ts';

export default defineConfig({
  test: {
    root: REPOSITORY,
    include: ['test/controller/**/*.api.test.ts'],
    testTimeout: 30_000,
    // A control plane each, which waits most of the time.
    maxWorkers: 2,
    hookTimeout: 120_000,
  },
});
