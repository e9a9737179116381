import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

const express4 = process.env.EXPRESS === '4'
/** Files left out of this run, separated by commas: projects do not heed `--exclude`. */
const without = (process.env.DOORWARD_TEST_WITHOUT ?? '').split(',').filter((file) => file !== '')

/** What replaces modules, counts what is loaded or kept in memory, or looks at the process as a whole. */
const alone = [
  'test/boot-host.test.ts',
  'test/guards/remembered-tokens.test.ts',
  'test/guards/two-copies.test.ts',
  'test/http/canary.test.ts',
  'test/local/mailer-faults.test.ts',
  'test/mail/postman.test.ts',
  'test/mfa/doors.test.ts',
  'test/mfa/throttle.test.ts',
  'test/passwords/lazy-packages.test.ts',
  'test/session/delivery.test.ts',
  'test/throttle/memory-counters.test.ts',
  'test/torture/fuzz.test.ts',
]

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
    testTimeout: 20_000,
    hookTimeout: 30_000,
    expect: { poll: { timeout: 10_000 } },
    pool: 'forks',
    // Half of the time is spent waiting for databases and child processes: a machine of two cores has room for three files.
    maxWorkers: Math.max(3, availableParallelism()),
    // Loading our modules and the drivers anew for every file was a quarter of the run.
    projects: [
      {
        extends: true,
        test: { name: 'together', include: ['test/**/*.test.ts'], exclude: ['**/node_modules/**', ...alone, ...without], isolate: false },
      },
      { extends: true, test: { name: 'alone', include: alone, exclude: without } },
    ],
  },
})
