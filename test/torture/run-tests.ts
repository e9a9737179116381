import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const vitest = join(createRequire(import.meta.url).resolve('vitest/package.json'), '../vitest.mjs')

/** Tests of the suite, asked for more than every run has time for; one line for each, and 1 when one failed or was skipped. */
export async function runTests(tests: readonly string[], asked: Record<string, string>, more: readonly string[] = []): Promise<number> {
  const env = { ...process.env, CI: 'true', VITE_CONFIG_NATIVE_IGNORE_WARNING: 'true', ...asked }
  const args = [vitest, 'run', '--config', 'test/vitest.config.mts', '--reporter=verbose', ...more, ...tests]
  const [exitCode] = await once(spawn(process.execPath, args, { cwd: root, stdio: 'inherit', env }), 'close')
  return (exitCode as number | null) ?? 1
}
