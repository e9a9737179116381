import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { defineConfig, type Plugin } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const express4 = process.env.EXPRESS === '4'
/** Files left out of this run, separated by commas: projects do not heed `--exclude`. */
const without = (process.env.DOORWARD_TEST_WITHOUT ?? '').split(',').filter((file) => file !== '')

/** Installs from the registry: only where that is asked for, as `.ci/run` does. */
const needsRegistry = process.env.DOORWARD_PACK === 'registry' ? [] : ['test/package/registry/**']

/** What replaces modules, counts what is loaded or kept in memory, or looks at the process as a whole. */
const alone = [
  'test/boot-host.test.ts',
  'test/doctor/lazy.test.ts',
  'test/guards/remembered-tokens.test.ts',
  'test/guards/two-copies.test.ts',
  'test/http/canary.test.ts',
  'test/local/mailer-faults.test.ts',
  'test/mail/postman.test.ts',
  'test/mfa/throttle.test.ts',
  'test/passkeys/lazy-package.test.ts',
  'test/passwords/lazy-packages.test.ts',
  'test/throttle/markers.test.ts',
  'test/throttle/memory-counters.test.ts',
  'test/throttle/throttle.test.ts',
]

/** What reads the routes as they are mounted (test/support/mounted-routes.ts). */
const watching = [
  'test/admin/actor.test.ts',
  'test/approval/ways.test.ts',
  'test/http/route-budgets.test.ts',
  'test/local/answer-grid.test.ts',
  'test/mfa/doors.test.ts',
  'test/openapi/limits.test.ts',
  'test/page-routes/accessibility.test.ts',
  'test/page-routes/every-form.test.ts',
  'test/page-routes/without-passwords.test.ts',
  'test/passkeys/limits.test.ts',
  'test/session/delivery.test.ts',
  'test/session/ended-cookies.test.ts',
  'test/step-up/routes.test.ts',
  'test/torture/fuzz.test.ts',
  'test/trusted-devices/ways.test.ts',
]
/** What takes a minute or more is begun first: begun last, it would keep one of the cores waiting. */
const longest = ['test/page-routes/accessibility.test.ts', 'test/torture/fuzz.test.ts', 'test/page-routes/every-form.test.ts']
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const isLong = ({ moduleId }: TestSpecification) => longest.some((file) => moduleId.endsWith(file))
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))]
  }
}

/** In every project: a cookie that no browser sends fails its test (test/support/cookie-check.ts). */
const failOnCookies = 'test/support/fail-on-cookies.ts'
const mountedRoutes = `${import.meta.dirname}/support/mounted-routes.ts`
const routes = join(import.meta.dirname, '../src/http/routes.ts')

/** Puts test/support/mounted-routes.ts in front of src/http/routes.ts. */
const watchRoutes: Plugin = {
  name: 'watch-routes',
  enforce: 'pre',
  async resolveId(source, importer, options) {
    if (importer === undefined || importer === mountedRoutes || !source.endsWith('/routes')) return null
    const found = await this.resolve(source, importer, { ...options, skipSelf: true })
    return found?.id === routes ? mountedRoutes : null
  },
}

export default defineConfig({
  root: `${import.meta.dirname}/..`,
  resolve: {
    alias: [
      // The examples import the package by its name; tests run them on the sources.
      { find: /^doorward\/testing$/, replacement: `${import.meta.dirname}/../src/testing.ts` },
      { find: /^doorward\/client$/, replacement: `${import.meta.dirname}/../src/client/client.ts` },
      { find: /^doorward\/(?:client\/)?(passkeys|admin|react)$/, replacement: `${import.meta.dirname}/../src/client/$1.ts` },
      { find: /^doorward$/, replacement: `${import.meta.dirname}/../src/index.ts` },
      ...(express4 ? [{ find: /^express$/, replacement: 'express4' }] : []),
    ],
  },
  test: {
    // The end of a worker never waits for what it still prints.
    disableConsoleIntercept: true,
    testTimeout: 60_000, // another process that needs the machine must not break a test
    hookTimeout: 60_000,
    expect: { poll: { timeout: 10_000 } },
    pool: 'forks',
    sequence: { sequencer: LongestFirst },
    // Half of the time is spent waiting for databases and child processes: a machine of two cores has room for four files. On SQLite
    // alone the CPU is the limit, and each worker loads the modules once more.
    maxWorkers: Math.max(process.env.DOORWARD_TEST_QUICK === '1' ? 3 : 4, availableParallelism()),
    // Loading our modules and the drivers anew for every file was a quarter of the run.
    projects: [
      {
        extends: true,
        test: {
          name: 'together',
          include: ['test/**/*.test.ts'],
          exclude: ['**/node_modules/**', ...alone, ...watching, ...without, ...needsRegistry],
          isolate: false,
          setupFiles: failOnCookies,
        },
      },
      {
        extends: true,
        plugins: [watchRoutes],
        test: {
          name: 'watching',
          include: watching,
          exclude: without,
          isolate: false,
          setupFiles: ['test/support/forget-mounted-routes.ts', failOnCookies],
        },
      },
      { extends: true, test: { name: 'alone', include: alone, exclude: without, setupFiles: failOnCookies } },
    ],
  },
})
