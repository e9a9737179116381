import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { type OutputOptions, type Plugin, rolldown } from 'rolldown'

/**
 * One CommonJS file with what every host needs, because three hundred small ones take Node three times as long to load. The test kit, and
 * what the source loads by `import()`, have files of their own, so that a host that does not use them loads nothing of them. Beside each
 * entry stands an ES module that imports it. So a host that uses both module systems, or two entries, still loads one copy, and
 * `instanceof AppError` and in-process counters hold across them. The declarations stay as the compiler writes them, a file for each source.
 */

const root = join(import.meta.dirname, '..')
const require = createRequire(import.meta.url)

interface Entry {
  import: { types: string; default: string }
  require: { types: string; default: string }
}

async function build(): Promise<void> {
  rmSync(join(root, 'dist'), { recursive: true, force: true })
  for (const project of [root, join(root, 'src/client')]) declare(project)
  await bundleLibrary()
  for (const entry of entries()) writeEntry(entry)
  await bundleCommand()
  await bundleClient()
}

function declare(project: string): void {
  const compile = [require.resolve('typescript/bin/tsc'), '-p', project, '--emitDeclarationOnly']
  const { status } = spawnSync(process.execPath, compile, { stdio: 'inherit', cwd: root })
  if (status !== 0) process.exit(status ?? 1)
}

/** What is installed beside us stays outside: the host's Express, Knex and drivers are its own. */
async function bundleLibrary(): Promise<void> {
  const library = { name: 'library', tags: ['$initial' as const], test: (path: string) => !/[\\/]src[\\/]testing[\\/.]/.test(path) }
  const sources = entries().map((entry) => basename(entry.require.default, '.js'))
  await bundle(Object.fromEntries(sources.map((name) => [name, join(root, `src/${name}.ts`)])), {
    dir: join(root, 'dist'),
    chunkFileNames: '[name].js',
    codeSplitting: { groups: [library] }, // `$initial`: without what only an `import()` loads
  })
}

/** Packages that the command's file brings with it, so that hosts need not install them. */
const bundled = ['csv-parse', 'csv-stringify']

/** The command is a file of its own: the library does not load it, nor it the library. */
async function bundleCommand(): Promise<void> {
  await bundle(join(root, 'src/cli/main.ts'), {
    file: join(root, 'dist/cli.js'),
    codeSplitting: false,
    banner: '#!/usr/bin/env node',
  })
  const licences = bundled.map((name) => `${name}\n\n${readFileSync(join(root, 'node_modules', name, 'LICENSE'), 'utf8')}`)
  writeFileSync(join(root, 'dist/cli.LICENSES.txt'), licences.join('\n\n'))
}

/** Properties that only the client's own files use: no option, no method, no field of a body, no name of the browser. They get short names. */
const inside =
  /^(asked|box|change|changes|clear|csrf|current|insist|isOther|keep|learn|leave|listen|lockName|look|lookedAt|messages|mode|once|options|post|ready|refresh|refreshes|reread|route|send|start|tokens|whoami)$/
const minify = { compress: true, mangle: true, mangleProps: { include: inside }, codegen: { removeWhitespace: true } }

/** For browsers: each entry is one ES module, which a page can load without a bundler. Passkeys come at the first call that needs them. */
async function bundleClient(): Promise<void> {
  const dir = join(root, 'dist/client')
  for (const name of ['client', 'passkeys', 'captcha', 'admin', 'react']) {
    const bundled = await rolldown({
      input: join(root, `src/client/${name}.ts`),
      cwd: root,
      platform: 'browser',
      external: [/\/passkeys\.js$/, 'react'],
      plugins: [ascii, quotedImport],
      transform: { target: 'es2020' },
      tsconfig: false,
    })
    // React calls a module with hooks only in the browser, where the directive says so.
    const banner = name === 'react' ? "'use client'" : ''
    await bundled.write({ file: join(dir, `${name}.js`), format: 'es', minify, comments: false, banner })
  }
  writeFileSync(join(dir, 'package.json'), '{ "type": "module" }\n')
}

async function bundle(input: string | Record<string, string>, output: OutputOptions): Promise<void> {
  const { dependencies, peerDependencies } = require('../package.json') as Record<string, Record<string, string>>
  const external = Object.keys({ ...dependencies, ...peerDependencies })
  const bundled = await rolldown({ input, cwd: root, platform: 'node', external, plugins: [ascii], transform, tsconfig: false })
  const commonjs = { format: 'cjs', exports: 'named', esModule: false, generatedCode: { symbols: false }, strict: true } as const
  await bundled.write({ ...commonjs, comments: false, ...output })
}

const transform = { target: 'node20' }

/** With a single typographic quotation mark in it, V8 would keep a whole file as text of two bytes a character. */
const ascii: Plugin = {
  name: 'ascii',
  generateBundle(_options, files) {
    for (const file of Object.values(files)) if (file.type === 'chunk') file.code = file.code.replace(/[^\0-\x7f]/g, escaped)
  },
}

/** The minifier writes every text as a template, and not every bundler reads one in an import. */
const quotedImport: Plugin = {
  name: 'quoted-import',
  generateBundle(_options, files) {
    for (const file of Object.values(files))
      if (file.type === 'chunk') file.code = file.code.replace(/import\(`([^`$]+)`\)/g, "import('$1')")
  },
}

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
}

/** Every subpath of `exports` that both module systems can reach. Browsers have one of them. */
function entries(): Entry[] {
  const { exports } = require('../package.json') as { exports: Record<string, Entry | object | string> }
  return Object.values(exports).filter((entry): entry is Entry => typeof entry !== 'string' && 'require' in entry)
}

function writeEntry(entry: Entry): void {
  const target = `./${entry.require.default.split('/').pop()}`
  const names = Object.keys(require(join(root, entry.require.default)) as object).sort()
  if (names.length === 0) throw new Error(`${entry.require.default} exports nothing`)
  writeFileSync(
    join(root, entry.import.default),
    `import commonjs from '${target}'\n\nexport const {\n${names.map((name) => `  ${name},\n`).join('')}} = commonjs\n`,
  )
  writeFileSync(join(root, entry.import.types), `export * from '${target}'\n`)
}

await build()
