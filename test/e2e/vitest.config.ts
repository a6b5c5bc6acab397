import { defineConfig } from 'vitest/config';
import { REPOSITORY } from '../vm/repository.ts';

export default defineConfig({
  test: {
    root: REPOSITORY,
    include: ['test/e2e/**/*.e2e.test.ts'],
    // One cluster at a time, whose tests build upon each other.
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 600_000,
  },
});
