import { defineConfig } from 'vitest/config';
import { REPOSITORY } from '../vm/repository.ts';

export default defineConfig({
  test: {
    root: REPOSITORY,
    include: ['test/nri-runtime/**/*.nri.test.ts'],
    testTimeout: 30_000,
  },
});
