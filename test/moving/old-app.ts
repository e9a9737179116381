import { fork } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** An app of this folder in a process of its own. It has only the library that it moves away from. */
export interface OldApp {
  readonly origin: string
  stop(): Promise<void>
}

/** Starts `<name>/app.mjs`. Its libraries are in test/moving/package.json: `npm ci --prefix test/moving`. */
export async function startOldApp(name: string, given: object): Promise<OldApp> {
  const env = { ...process.env, OLD_APP: JSON.stringify(given) }
  const child = fork(join(import.meta.dirname, name, 'app.mjs'), { env, execArgv: [], stdio: ['ignore', 'ignore', 'inherit', 'ipc'] })
  const exited = once(child, 'exit').then(() => undefined)
  const origin = await Promise.race([once(child, 'message').then(([message]) => String(message)), exited])
  if (origin === undefined)
    throw new Error(`test/moving/${name}/app.mjs did not start; run \`npm ci --ignore-scripts --prefix test/moving\` first`)
  return {
    origin,
    async stop() {
      child.kill()
      await exited
    },
  }
}
