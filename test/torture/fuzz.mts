/**
 * Asks every route anything at all, on both majors of Express: hosts of every delivery, without passkeys, login by email and pages. No 5xx of
 * ours, the envelope for every refusal, never a hang, and a heap that does not grow. It is `test/torture/fuzz.test.ts` with more
 * requests: the suite runs a few thousand of them with a fixed seed.
 *
 *   npm run torture -- fuzz                              200,000 requests on each major, a seed of today
 *   npm run torture -- fuzz --seed 7 --requests 300      the same requests again; what a violation names
 *   npm run torture -- fuzz --express 4                  one major
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1000)) },
    requests: { type: 'string', default: '200000' },
    express: { type: 'string', multiple: true, default: ['5', '4'] },
  },
})
const root = join(import.meta.dirname, '../..')
const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs')

console.log(`seed ${values.seed}, ${values.requests} requests on Express ${values.express.join(' and ')}`)
const codes = await Promise.all(values.express.map(run))
if (codes.some((code) => code !== 0)) process.exitCode = 1

/** Two cores, two majors. */
async function run(major: string): Promise<number | null> {
  const env = { ...process.env, EXPRESS: major, DOORWARD_FUZZ_SEED: values.seed, DOORWARD_FUZZ_REQUESTS: values.requests }
  const args = [vitest, 'run', '--config', 'test/vitest.config.mts', '--disable-console-intercept=true', 'test/torture/fuzz.test.ts']
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: 'inherit' })
  const [code] = (await once(child, 'close')) as [number | null]
  return code
}
