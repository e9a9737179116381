import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export const baseline = "doorward's dependencies"

/** What a host has, and what `lib/hosts.mjs` calls it. */
export const hosts: ReadonlyMap<string, string> = new Map([
  ['nothing but Express', 'express'],
  [baseline, 'dependencies'],
  ['doorward', 'doorward'],
  ['better-auth', 'better-auth'],
  ['Auth.js', 'authjs'],
])

const runFile = promisify(execFile)
const servers = join(import.meta.dirname, '../servers')

export interface HostDatabase {
  readonly environment: Readonly<Record<string, string>>
  remove(): void
}

/** Has everybody's tables. */
export async function makeHostDatabase(): Promise<HostDatabase> {
  const folder = mkdtempSync(join(tmpdir(), 'doorward-bench-'))
  const environment = { BENCH_DATABASE: join(folder, 'app.sqlite') }
  await runServer('make-tables.mjs', environment)
  return { environment, remove: () => rmSync(folder, { recursive: true }) }
}

/** To its end; what it printed, and the milliseconds it took. */
export async function runServer(file: string, environment: Readonly<Record<string, string>>) {
  const begun = performance.now()
  const { stdout } = await runFile(process.execPath, [join(servers, file)], {
    env: { ...process.env, NODE_ENV: 'production', ...environment },
  })
  return { stdout, milliseconds: performance.now() - begun }
}
