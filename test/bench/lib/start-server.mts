import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

export interface Usage {
  /** Of all its threads, since it started. */
  cpuMicros: number
  rssBytes: number
  heapBytes: number
}

export interface Server {
  readonly origin: string
  readonly pid: number
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
  /** A program that is to run Node, and what it is told before. */
  under?: readonly [program: string, ...its: string[]]
}

const folder = join(import.meta.dirname, '../servers')

/** Of the servers; a bench that fails leaves none behind either, and its servers end with it. */
const data = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
process.once('exit', () => rmSync(data, { recursive: true, force: true }))

/** Runs a file of `servers/` in a process of its own, as in production, until it says READY. */
export async function startServer(file: string, { environment = {}, execArgv = [], under }: StartOptions = {}): Promise<Server> {
  const own = mkdtempSync(join(data, 'server-'))
  const begun = performance.now()
  const child = fork(join(folder, file), {
    ...(under && { execPath: under[0] }),
    execArgv: under ? [...under.slice(1), process.execPath, ...execArgv] : [...execArgv],
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
    pid: child.pid ?? 0, // it runs
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
    },
  }
}

/** Reads on to the end: who writes to a pipe that nobody reads stands still. */
function readyLine(output: NodeJS.ReadableStream | null): Promise<string> {
  if (!output) throw new Error('its output is not piped')
  return new Promise((resolve) => {
    createInterface({ input: output }).on('line', (line) => {
      const origin = /^READY (\S+)$/.exec(line)?.[1]
      if (origin) resolve(origin)
    })
  })
}
