import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import ts from 'typescript'
import * as doorward from '../../src'

const root = join(import.meta.dirname, '../..')
const requireHere = createRequire(import.meta.url)

/** A page of docs/moving as a reader uses it: its code is run as it stands there. */
export interface Guide<Exports> {
  /** What its TypeScript blocks export. */
  code: Exports
  /** Its SQL blocks, in their order. */
  sql: readonly string[]
  /** What its shell blocks pass to `npx --no-install doorward`. */
  commands: readonly string[]
}

export function readGuide<Exports>(page: string): Guide<Exports> {
  const text = readFileSync(join(root, 'docs', `${page}.md`), 'utf8')
  const blocks = [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^\1```$/gm)].map(([, indent = '', language, code = '']) => ({
    language,
    code: code.replaceAll(new RegExp(`^${indent}`, 'gm'), ''),
  }))
  const of = (language: string) => blocks.filter((block) => block.language === language).map(({ code }) => code)
  const commands = of('sh').flatMap((code) => [...code.matchAll(/^npx --no-install doorward (.+)$/gm)].map(([, line]) => String(line)))
  return { code: Object.assign({}, ...of('ts').map(run)), sql: of('sql'), commands }
}

/** Compiled as docs-code.test.ts checks it, and run with our sources in the place of the package. */
function run(code: string): unknown {
  const options = { module: ts.ModuleKind.CommonJS, target: ts.ScriptTarget.ES2022, esModuleInterop: true }
  const { outputText } = ts.transpileModule(code, { compilerOptions: options })
  const exports = {}
  const load = (name: string) => (name === 'doorward' ? doorward : requireHere(name))
  new Function('require', 'exports', outputText)(load, exports)
  return exports
}
