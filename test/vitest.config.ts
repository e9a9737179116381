import { defineConfig } from 'vitest/config'

const express4 = process.env.EXPRESS === '4'

export default defineConfig({
  root: `${import.meta.dirname}/..`,
  resolve: { alias: express4 ? { express: 'express4' } : {} },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    pool: 'forks',
  },
})
