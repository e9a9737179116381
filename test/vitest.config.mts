import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const express4 = process.env.EXPRESS === '4'

export default defineConfig({
  root: `${import.meta.dirname}/..`,
  resolve: {
    alias: [
      // The examples import the package by its name; tests run them on the sources.
      { find: /^doorward\/testing$/, replacement: `${import.meta.dirname}/../src/testing.ts` },
      { find: /^doorward$/, replacement: `${import.meta.dirname}/../src/index.ts` },
      ...(express4 ? [{ find: /^express$/, replacement: 'express4' }] : []),
    ],
  },
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
    pool: 'forks',
    // Half of the time is spent waiting for databases and child processes: a machine of two cores has room for three files.
    maxWorkers: Math.max(3, availableParallelism()),
  },
})
