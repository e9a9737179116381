import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Usage {
  /** Of all its threads, since it started. */
  cpuMicros: number
  rssBytes: number
  heapBytes: number
}

export interface Server {
  readonly origin: string
  /** From the fork until it said READY. */
  readonly startMilliseconds: number
  /** `gc`: after a collection; needs `--expose-gc`. */
  ask(question: 'usage' | 'gc'): Promise<Usage>
  stop(): Promise<void>
}

export interface StartOptions {
  /** What the server reads of `process.env`, beside `BENCH_FOLDER`: an empty folder of its own. */
  environment?: Readonly<Record<string, string>>
  execArgv?: readonly string[]
}

const folder = join(import.meta.dirname, '../servers')

/** Runs a file of `servers/` in a process of its own, as in production, until it says READY. */
export async function startServer(file: string, { environment = {}, execArgv = [] }: StartOptions = {}): Promise<Server> {
  const own = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
  const begun = performance.now()
  const child = fork(join(folder, file), {
    execArgv: [...execArgv],
    env: { ...process.env, NODE_ENV: 'production', BENCH_FOLDER: own, ...environment },
    stdio: ['ignore', 'pipe', 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit')
  const origin = await Promise.race([
    readyLine(child.stdout),
    exited.then(([code]) => Promise.reject(new Error(`${file} ended with ${code} before it was ready`))),
  ])
  return {
    origin,
    startMilliseconds: performance.now() - begun,
    async ask(question) {
      const answered = once(child, 'message')
      child.send(question)
      const [usage] = (await answered) as [Usage]
      return usage
    },
    async stop() {
      child.kill()
      await exited
      rmSync(own, { recursive: true, force: true })
    },
  }
}

async function readyLine(output: NodeJS.ReadableStream | null): Promise<string> {
  let text = ''
  for await (const chunk of output ?? []) {
    text += chunk
    const origin = /^READY (\S+)$/m.exec(text)?.[1]
    if (origin) return origin
  }
  throw new Error(`no READY in: ${text}`)
}
