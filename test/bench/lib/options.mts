import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

export interface BenchOptions {
  rounds: number
  /** A look, not a measurement: two short rounds. */
  quick: boolean
  /** Puts the table into test/bench/README.md. */
  write: boolean
  /** Only contestants whose name has this in it, and ours. */
  only: string | null
}

/**
 * `--rounds 5 --quick --write --only text --connections 8` of the command line: so many connections send at the same time. Ends with a
 * sentence where something is not installed.
 */
export function readOptions({ rounds }: { rounds: number }): BenchOptions & { connections: number } {
  requireInstalled()
  const { values } = parseArgs({
    options: {
      ...{ rounds: { type: 'string' }, quick: { type: 'boolean' }, write: { type: 'boolean' } },
      ...{ only: { type: 'string' }, connections: { type: 'string' } },
    },
  })
  const { quick = false, write = false, only = null } = values
  return {
    rounds: Number(values.rounds ?? (quick ? 2 : rounds)),
    quick,
    write,
    only,
    connections: Number(values.connections ?? 8),
  }
}

function requireInstalled(): void {
  const has = (path: string) => existsSync(join(import.meta.dirname, path))
  const missing = [
    ...(has('../node_modules/better-auth') ? [] : ['npm ci --prefix test/bench']),
    ...(has('../../../dist/index.mjs') ? [] : ['npm run build']),
  ]
  if (missing.length === 0) return
  console.error(`What doorward is measured beside is not here yet: run ${missing.join(' and ')} first.`)
  process.exit(1)
}
