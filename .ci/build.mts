import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { buildSync } from 'esbuild'

/**
 * One CommonJS file with everything in it, because three hundred small ones take Node three times as long to load. Every
 * entry of `exports` hands out its part of that file, and beside it stands an ES module that imports it: a host that uses both
 * module systems, or two entries, still loads one copy, so `instanceof AppError` and in-process counters hold across them.
 * The declarations stay as the compiler writes them, a file for each source.
 */

const root = join(import.meta.dirname, '..')
const require = createRequire(import.meta.url)

interface Entry {
  import: { types: string; default: string }
  require: { types: string; default: string }
}

function build(): void {
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  const compile = [require.resolve('typescript/bin/tsc'), '-p', root, '--emitDeclarationOnly']
  const { status } = spawnSync(process.execPath, compile, { stdio: 'inherit', cwd: root })
  if (status !== 0) process.exit(status ?? 1)
  bundle(entries().map(nameOf))
  for (const entry of entries()) writeEntry(entry)
  bundleCommand()
}

/** `index` of `./dist/index.js`, which is `src/index.ts`. */
function nameOf(entry: Entry): string {
  return basename(entry.require.default, '.js')
}

/** What is installed beside us stays outside: the host's Express, Knex and drivers are its own. */
function bundle(names: readonly string[]): void {
  buildSync({
    stdin: { contents: names.map((name) => `export * as ${name} from './${name}'`).join('\n'), resolveDir: join(root, 'src') },
    absWorkingDir: root,
    bundle: true,
    packages: 'external',
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    outfile: join(root, 'dist/bundle.js'),
    banner: { js: "'use strict'" }, // as every module was that is in it
    logLevel: 'warning',
  })
}

/** Packages that the command's file brings with it, so that hosts need not install them. */
const bundled = ['csv-parse', 'csv-stringify']

/** The command is a file of its own: the library does not load it, nor it the library. */
function bundleCommand(): void {
  const { dependencies, peerDependencies } = require('../package.json') as Record<string, Record<string, string>>
  buildSync({
    entryPoints: [join(root, 'src/command/main.ts')],
    absWorkingDir: root,
    bundle: true,
    external: Object.keys({ ...dependencies, ...peerDependencies }),
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    outfile: join(root, 'dist/cli.js'),
    banner: { js: "#!/usr/bin/env node\n'use strict'" },
    logLevel: 'warning',
  })
  const licences = bundled.map((name) => `${name}\n\n${readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8')}`)
  writeFileSync(join(root, 'dist/cli.LICENSES.txt'), licences.join('\n\n'))
}

/** Every subpath of `exports` that both module systems can reach. */
function entries(): Entry[] {
  const { exports } = require('../package.json') as { exports: Record<string, Entry | string> }
  return Object.values(exports).filter((entry) => typeof entry !== 'string')
}

function writeEntry(entry: Entry): void {
  writeFileSync(join(root, entry.require.default), `'use strict'\n\nmodule.exports = require('./bundle.js').${nameOf(entry)}\n`)
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
