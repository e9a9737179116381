import { spawnSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'

/**
 * One CommonJS build by tsc, and beside every entry a generated ES module that imports it: a host that uses both module
 * systems still loads one copy, so `instanceof AppError` and in-process counters hold across them.
 */

const root = join(import.meta.dirname, '..')
const require = createRequire(import.meta.url)

interface Entry {
  import: { types: string; default: string }
  require: { types: string; default: string }
}

function build(): void {
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  const { status } = spawnSync(process.execPath, [require.resolve('typescript/bin/tsc'), '-p', root], { stdio: 'inherit', cwd: root })
  if (status !== 0) process.exit(status ?? 1)
  for (const entry of entries()) writeWrapper(entry)
}

/** Every subpath of `exports` that both module systems can reach. */
function entries(): Entry[] {
  const { exports } = require('../package.json') as { exports: Record<string, Entry | string> }
  return Object.values(exports).filter((entry) => typeof entry !== 'string')
}

function writeWrapper(entry: Entry): void {
  const target = `./${entry.require.default.split('/').pop()}`
  const names = Object.keys(require(join(root, entry.require.default)) as object).sort()
  if (names.length === 0) throw new Error(`${entry.require.default} exports nothing`)
  writeFileSync(
    join(root, entry.import.default),
    `import commonjs from '${target}'\n\nexport const {\n${names.map((name) => `  ${name},\n`).join('')}} = commonjs\n`,
  )
  writeFileSync(join(root, entry.import.types), `export * from '${target}'\n`)
}

build()
