import { defineConfig } from 'vitest/config';
import { REPOSITORY } from '../vm/repository.ts';

export default defineConfig({
  test: {
    root: REPOSITORY,
    include: ['test/telemetry/**/*.telemetry.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
});
