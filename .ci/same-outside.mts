/**
 * Shows that a change is invisible to a host: `npx tsx .ci/same-outside.mts [commit]` compares this checkout with a commit (default: the
 * one before). It compares the shape of every exported type (with settings and events), the OpenAPI documents (with routes, bodies and codes),
 * and the tables on SQLite. Names of types that are not exported may differ. Exit 1: something differs.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import ts from 'typescript'

const root = join(import.meta.dirname, '..')

/** The shape of each exported name, without the names of types that are not exported. */
function shapesOf(checkout: string): Map<string, string> {
  const shapes = new Map<string, string>()
  const entries = ['index', 'testing'].map((name) => join(checkout, `src/${name}.ts`))
  const config = ts.readConfigFile(join(checkout, 'tsconfig.json'), ts.sys.readFile)
  const { options } = ts.parseJsonConfigFileContent(config.config, ts.sys, checkout)
  const program = ts.createProgram(entries, { ...options, noEmit: true })
  const checker = program.getTypeChecker()
  for (const entry of entries) {
    const source = program.getSourceFile(entry)
    const module = source && checker.getSymbolAtLocation(source)
    for (const exported of module ? checker.getExportsOfModule(module) : []) {
      const symbol = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported
      const parts: string[] = []
      if (symbol.flags & ts.SymbolFlags.Value && source)
        parts.push(`value ${shapeOf(checker, checker.getTypeOfSymbolAtLocation(symbol, source))}`)
      if (symbol.flags & ts.SymbolFlags.Type) parts.push(`type ${shapeOf(checker, checker.getDeclaredTypeOfSymbol(symbol))}`)
      shapes.set(`${entry.slice(checkout.length)} ${exported.name}`, parts.join('; '))
    }
  }
  return shapes
}

/** Writes a type by its members. A type inside itself is written as the number of levels above, so that its name does not count. */
function shapeOf(checker: ts.TypeChecker, type: ts.Type, above: readonly ts.Type[] = []): string {
  if (type.symbol?.name === 'AuthContext') return 'AuthContext' // reaches types that hosts get in the callbacks of a result, unread
  const level = above.indexOf(type)
  if (level !== -1) return `^${above.length - level}`
  const inside = [...above, type]
  const inner = (part: ts.Type) => shapeOf(checker, part, inside)
  if (type.isUnion()) return `(${type.types.map(inner).sort().join(' | ')})`
  if (type.isIntersection()) return `(${type.types.map(inner).sort().join(' & ')})`
  const isForeign = type.symbol?.declarations?.some((node) => /node_modules/.test(node.getSourceFile().fileName))
  if (isForeign || !(type.flags & ts.TypeFlags.Object) || above.length > 12)
    return checker.typeToString(type, undefined, ts.TypeFormatFlags.NoTruncation).replaceAll(/\b[A-Z]\w+<.*>/g, '<>')
  const signature = (one: ts.Signature) =>
    `(${one.parameters.map((parameter) => inner(checker.getTypeOfSymbol(parameter))).join(', ')}) => ${inner(one.getReturnType())}`
  const members = checker.getPropertiesOfType(type).map((member) => {
    const isOptional = member.flags & ts.SymbolFlags.Optional ? '?' : ''
    return `${member.name.replace(/@\d+$/, '')}${isOptional}: ${inner(checker.getTypeOfSymbol(member))}`
  })
  const calls = [...type.getCallSignatures(), ...type.getConstructSignatures()].map(signature)
  return `{ ${[...members.sort(), ...calls].join('; ')} }`
}

/** What a running router shows. Reads only exports of the package, because inner files move. */
const probe = `
const loaded = await import(process.argv[1])
const { createAuthRouter, createAuthTables, createKnexStore, ...rest } = loaded.createAuthRouter ? loaded : loaded.default
const { default: knex } = await import('knex')
const { default: express } = await import('express')
const db = knex({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true, pool: { min: 1, max: 1 } })
await createAuthTables(db)
const shown = { tables: await db.raw('select type, name, sql from sqlite_master order by type, name'), exports: Object.keys(rest).sort() }
const quiet = { info() {}, warn() {}, error() {} }
const google = new rest.GoogleClient({ clientId: 'x', clientSecret: 'y' })
for (const tokenDelivery of ['bearer', 'cookie', 'both', 'session']) {
  const auth = createAuthRouter({
    settings: { jwtSecret: 'a secret to compare with, long enough for this', publicUrl: 'https://app.example.test', tokenDelivery, openapiEnabled: true, mfaEnabled: true,
      mfaIssuer: 'App', mfaSecretKey: crypto.getRandomValues(Buffer.alloc(32)).toString('base64'), pagesEnabled: tokenDelivery !== 'bearer', emailLogin: 'link', emailLoginUrlTemplate: 'https://app.example.test/in/{token}', activationUrlTemplate: 'https://app.example.test/a/{token}', passwordResetUrlTemplate: 'https://app.example.test/r/{token}', passkeysEnabled: true, oauthEnabled: true, backendLinks: true },
    store: createKnexStore({ knex: db }), environment: 'test', logger: quiet, mailer: { async send() {} }, providers: { google },
  })
  const server = express().use('/auth', auth).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const response = await fetch('http://127.0.0.1:' + server.address().port + '/auth/openapi.json')
  if (response.status !== 200) throw new Error('openapi.json is ' + response.status)
  const { info: { version: _digestOfTheOrder, ...info }, ...document } = await response.json()
  shown['openapi ' + tokenDelivery] = { info, ...document }
  server.close()
}
await (await import('node:fs/promises')).writeFile(process.argv[2], JSON.stringify(shown, (_, value) => value && typeof value === 'object' && !Array.isArray(value) ? Object.fromEntries(Object.entries(value).sort()) : value))
process.exit(0)
`

function shownBy(checkout: string): Map<string, string> {
  const [index, answer] = [
    pathToFileURL(join(checkout, 'src/index.ts')).href,
    join(mkdtempSync(join(tmpdir(), 'doorward-shown-')), 'shown.json'),
  ]
  execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', probe, index, answer], {
    cwd: root,
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const shown: Record<string, unknown> = JSON.parse(readFileSync(answer, 'utf8'))
  return new Map(Object.entries(shown).map(([name, value]) => [name, JSON.stringify(value)]))
}

function firstDifference(one: string, other: string): number {
  const at = [...one].findIndex((letter, index) => letter !== other[index])
  return Math.max(0, at - 60)
}

const commit = process.argv[2] ?? 'HEAD~1'
const before = mkdtempSync(join(tmpdir(), 'doorward-before-'))
let differences = 0
try {
  execFileSync('git', ['worktree', 'add', '--detach', '--force', before, commit], { cwd: root, stdio: 'ignore' })
  symlinkSync(join(root, 'node_modules'), join(before, 'node_modules'))
  for (const read of [shapesOf, shownBy]) {
    const [old, now] = [read(before), read(root)]
    for (const name of new Set([...old.keys(), ...now.keys()])) {
      if (old.get(name) === now.get(name)) continue
      differences += 1
      const at = firstDifference(old.get(name) ?? '', now.get(name) ?? '')
      console.log(`${name} differs:\n  before: ${old.get(name)?.slice(at, at + 200)}\n  now:    ${now.get(name)?.slice(at, at + 200)}`)
    }
    console.log(`${now.size} compared`)
  }
} finally {
  rmSync(join(before, 'node_modules'), { force: true })
  execFileSync('git', ['worktree', 'remove', '--force', before], { cwd: root, stdio: 'ignore' })
  rmSync(before, { recursive: true, force: true })
}
process.exit(differences === 0 ? 0 : 1)
