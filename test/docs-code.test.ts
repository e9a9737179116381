import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import ts from 'typescript'
import { describe, expect, test } from 'vitest'
import { authFile } from '../src/cli/init/auth-file'
import { diagnosticsOf, programOf } from './support/compile'
import { docPages } from './support/doc-pages'

/**
 * The documentation's code is compiled like ours. Every ```ts and ```js block stands alone, unless the line before it is
 * `<!-- continues -->`: then it goes on where the block before it, on the same page, ended. Every ```sh block runs only
 * npm scripts, tools and files that exist.
 */

const root = join(import.meta.dirname, '..')
const scripts = (JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts

interface Block {
  page: string
  /** Of the block's first line of code. */
  line: number
  language: string
  code: string
  continues: boolean
}

const pages = ['README.md', ...docPages()]
const authModule = authFile({
  app: { language: 'JavaScript', modules: 'ESM', authFile: 'auth.mjs', knexfile: null, library: null },
  choices: { delivery: 'session', client: 'better-sqlite3', providers: [], hasPages: true },
  users: null,
})
/** The parts of a client of Prisma that a page uses; test/examples/with-libraries.test.ts compiles against a real one. */
const prismaClient = `
interface Raw {
  $queryRawUnsafe<T = unknown>(query: string, ...values: unknown[]): Promise<T>
  $executeRawUnsafe(query: string, ...values: unknown[]): Promise<number>
}
export declare class PrismaClient {
  constructor(options: { adapter: object })
  $transaction<T>(work: (tx: Raw & { company: { create(row: { data: { name: string; owner: string } }): Promise<unknown> } }) => Promise<T>): Promise<T>
}`
const blocks = pages.flatMap((page) => blocksOf(page, read(page)))

describe('the code in README.md and docs', () => {
  test('README.md shows TypeScript or JavaScript, and the two commands of a newcomer', () => {
    const readme = blocks.filter((block) => block.page === 'README.md')

    expect(readme.filter(isCode).length).toBeGreaterThan(0)
    expect(read('README.md')).toContain('npm ci && npm run demo')
    expect(read('README.md')).toContain('npm ci && npm test')
  })

  test('every block compiles, in strict mode, against the public API', () => {
    expect(compileErrors(unitsOf(blocks))).toEqual([])
  }, 180_000)

  test('every shell block uses only scripts, tools and files that exist', () => {
    expect(blocks.filter(isShell).flatMap(shellErrors)).toEqual([])
  })

  test('every fence names its language, so that no code escapes the checks above', () => {
    expect(blocks.filter(({ language }) => !/^(ts|js|sh|json|sql|text|html|http|ini|mermaid)$/.test(language)).map(place)).toEqual([])
  })
})

describe('what these checks find', { timeout: 60_000 }, () => {
  const page = (...lines: string[]) => blocksOf('docs/made-up.md', lines.join('\n'))

  test('a block that does not compile, with the page and line', () => {
    const broken = page('# Title', '', '```ts', 'const fine = 1', 'const wrong: string = fine', '```')

    expect(compileErrors(unitsOf(broken))).toEqual([expect.stringContaining('docs/made-up.md:5')])
  })

  test('an export the package does not have, in TypeScript and in JavaScript', () => {
    const blocks = page('```ts', "import { nothing } from 'doorward'", '```', '```js', "import { nothing } from 'doorward'", '```')

    expect(compileErrors(unitsOf(blocks))).toHaveLength(2)
  })

  test('a block that leans on another without saying so', () => {
    const first = ['```ts', 'export const a = 1', '```']
    const second = ['```ts', 'export const b = a + 1', '```']

    expect(compileErrors(unitsOf(page(...first, ...second)))).toHaveLength(1)
    expect(compileErrors(unitsOf(page(...first, '<!-- continues -->', ...second)))).toEqual([])
  })

  test('a shell block with a script, a tool or a file that is not there', () => {
    const [block] = page('```sh', 'npm ci && npm run fly', 'npx flyctl deploy', 'npx tsx examples/none.ts', 'npm test', '```')

    expect(block && shellErrors(block)).toHaveLength(3)
  })
})

function blocksOf(page: string, text: string): Block[] {
  const lines = text.split('\n')
  const found: Block[] = []
  for (let start = 0; start < lines.length; start++) {
    const [, indent, language] = /^( *)```(.*)$/.exec(lines[start] ?? '') ?? []
    if (indent === undefined || language === undefined) continue
    const end = lines.indexOf(`${indent}\`\`\``, start + 1)
    if (end === -1) throw new Error(`${page}:${start + 1}: this fence is never closed`)
    const code = lines.slice(start + 1, end).map((line) => line.slice(indent.length))
    const continues = lines[start - 1]?.trim() === '<!-- continues -->'
    found.push({ page, line: start + 2, language: language.trim(), code: code.join('\n'), continues })
    start = end
  }
  return found
}

/** One source file per block that starts afresh. Blank lines keep every line of code at its line number on the page. */
function unitsOf(found: Block[]): Map<string, string> {
  const units = new Map<string, string>()
  let name = ''
  for (const block of found.filter(isCode)) {
    if (!block.continues) name = join(root, `${block.page}.${block.line}.${block.language}`)
    const before = units.get(name) ?? ''
    const padding = '\n'.repeat(block.line - 1 - (before.match(/\n/g)?.length ?? 0))
    units.set(name, `${before}${padding}${block.code}\n`)
  }
  return units
}

/**
 * Compiles the units as if they stood beside their pages, without writing them anywhere. `./auth.mjs` is what `doorward init` writes, and
 * `./generated/client` what Prisma generates.
 */
function compileErrors(units: ReadonlyMap<string, string>): string[] {
  const written = [
    { name: './auth.mjs', file: 'auth.mjs', text: authModule },
    { name: './generated/client', file: 'generated/client.ts', text: prismaClient },
  ]
  const made = written.flatMap(({ name, file, text }) =>
    [...units].filter(([, code]) => code.includes(`'${name}'`)).map(([path]) => [join(dirname(path), file), text] as const),
  )
  const all = new Map([...units, ...made])
  return diagnosticsOf(programOf(all), all).map(sentence)
}

function sentence({ file, start, messageText }: ts.Diagnostic): string {
  const page = file?.fileName.slice(root.length + 1).replace(/\.\d+\.(ts|js)$/, '')
  const line = file && start !== undefined ? file.getLineAndCharacterOfPosition(start).line + 1 : 0
  return `${page}:${line} ${ts.flattenDiagnosticMessageText(messageText, ' ')}`
}

function shellErrors(block: Block): string[] {
  const commands = block.code.split(/\n|&&|\|\||;|\|/).map((command) => command.replace(/#.*$/, '').trim())
  return commands.flatMap((command) => (isRunnable(command) ? [] : [`${place(block)} ${command}`]))
}

function isRunnable(command: string): boolean {
  const [program, ...words] = command.replace(/^(\w+=\S+ +)+/, '').split(/ +/)
  if (program === 'npm' && words[0] === 'run') return scripts[words[1] ?? ''] !== undefined
  if (program === 'npm' && words[0] === 'test') return scripts.test !== undefined
  if (command.startsWith('npx --no-install doorward ')) return true // our own; what it knows is tested in test/command
  if (program === 'npx') return existsSync(join(root, 'node_modules/.bin', words[0] ?? '')) && filesExist(words.slice(1))
  return program === 'node' ? filesExist(words) : true
}

/** A path of ours: `src/…`, `test/…`, `examples/…`. What else a command names belongs to the reader's project. */
function filesExist(words: string[]): boolean {
  return words.filter((word) => /^(src|test|examples|docs)\//.test(word)).every((word) => existsSync(join(root, word)))
}

function isCode({ language }: Block): boolean {
  return language === 'ts' || language === 'js'
}

function isShell({ language }: Block): boolean {
  return language === 'sh'
}

function place({ page, line }: Block): string {
  return `${page}:${line}`
}

function read(page: string): string {
  return existsSync(join(root, page)) ? readFileSync(join(root, page), 'utf8') : ''
}
