import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import knex, { type Knex } from 'knex'
import ts from 'typescript'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { freePort } from '../support/free-port'
import { onTerminal } from '../support/terminal'
import { ensureBuilt, manifest, root } from './built-package'

/**
 * `doorward init` on a real terminal, in apps of seven kinds. What it prints is done as it stands there: its lines go into the app, its
 * commands are run, and then a person signs up.
 */

interface Kind {
  name: string
  express: '4' | '5'
  files: Record<string, string>
  /** What a person types, one answer a question. */
  answers: string[]
  written: string[]
  /** An app with a users table of its own, in this file. */
  database?: string
}

const withType = (type: string) => JSON.stringify({ name: 'app', private: true, type })
const tsconfig = (module: string) =>
  JSON.stringify({ compilerOptions: { module, target: 'es2023', strict: true, skipLibCheck: true, types: ['node'] }, include: ['src'] })
const required = "const express = require('express')\n"
const imported = "import express from 'express'\n"
/** The app without doorward, as its owner has it. */
const app = (load: string) => `${load}
const app = express()
app.listen(process.env.PORT, () => console.log('listening'))
`
const sqlite = (file: string) => `{ client: 'better-sqlite3', connection: { filename: './${file}' }, useNullAsDefault: true }`

const kinds: readonly Kind[] = [
  {
    name: 'JavaScript, CommonJS, Express 4',
    express: '4',
    files: { 'package.json': withType('commonjs'), 'app.js': app(required) },
    answers: ['', '', ''],
    written: ['auth.js', '.env.example'],
  },
  {
    name: 'JavaScript in .mjs, Express 5',
    express: '5',
    files: { 'package.json': '{ "name": "app" }', 'server.mjs': app(imported) },
    answers: ['cookies', 'cookie', 'google, github', 'no'],
    written: ['auth.mjs', '.env.example'],
  },
  {
    name: 'TypeScript, CommonJS, Express 5',
    express: '5',
    files: { 'package.json': withType('commonjs'), 'tsconfig.json': tsconfig('node20'), 'src/app.ts': app(imported) },
    answers: ['bearer', ''],
    written: ['src/auth.ts', '.env.example'],
  },
  {
    name: 'TypeScript, ES modules, Express 4, with a users table',
    express: '4',
    files: {
      'package.json': withType('module'),
      'tsconfig.json': tsconfig('nodenext'),
      'src/index.ts': app(imported),
      'knexfile.ts': `import type { Knex } from 'knex'\nconst config: Knex.Config = ${sqlite('shop.sqlite')}\nexport default config\n`,
    },
    answers: ['', '', ''],
    written: ['src/auth.ts', 'migrations/<time>_doorward.ts', '.env.example'],
    database: 'shop.sqlite',
  },
  {
    name: 'JavaScript, CommonJS, Express 5, with a users table',
    express: '5',
    files: {
      'package.json': withType('commonjs'),
      'app.js': app(required),
      'knexfile.js': `module.exports = { development: { ...${sqlite('dev.sqlite')}, migrations: { directory: './db/steps' } } }\n`,
    },
    answers: ['', '', ''],
    written: ['auth.js', 'db/steps/<time>_doorward.js', '.env.example'],
    database: 'dev.sqlite',
  },
  {
    name: 'JavaScript, ES modules, Express 5, with Kysely',
    express: '5',
    files: {
      'package.json': JSON.stringify({ name: 'app', type: 'module', dependencies: { kysely: '*' } }),
      'app.js': app(imported),
    },
    answers: ['', '', ''],
    written: ['auth.js', '.env.example'],
  },
  {
    name: 'JavaScript, ES modules, Express 4, with a users table',
    express: '4',
    files: {
      'package.json': withType('module'),
      'src/app.js': app(imported),
      'knexfile.js': `export default ${sqlite('dev.sqlite')}\n`,
    },
    answers: ['both', '', 'no'],
    written: ['src/auth.js', 'migrations/<time>_doorward.js', '.env.example'],
    database: 'dev.sqlite',
  },
]

const scratch = mkdtempSync(join(tmpdir(), 'doorward-init-'))
const folderOf = ({ name, express }: Kind) => join(scratch, `express${express}`, name.replace(/\W+/g, '-'))
const running: ChildProcess[] = []

beforeAll(() => {
  ensureBuilt()
  for (const major of ['4', '5']) install(join(scratch, `express${major}`), major)
  for (const kind of kinds) for (const [path, text] of Object.entries(kind.files)) write(join(folderOf(kind), path), text)
}, 300_000)

afterAll(async () => {
  for (const child of running) if (child.exitCode === null && child.kill()) await once(child, 'exit')
  rmSync(scratch, { recursive: true, force: true })
})

describe.concurrent('doorward init', () => {
  test.each(kinds)('in an app of $name: a person signs up', async (kind) => {
    const folder = folderOf(kind)
    if (kind.database) await withDatabase(kind, makeUsersTable)
    const before = filesIn(folder)

    const command = [process.execPath, '../node_modules/doorward/dist/cli.js', 'init']
    const started = (child: ChildProcess) => running.push(child)
    const { code, left, presented } = await onTerminal(command, { cwd: folder, env: environment(), answers: kind.answers, started })
    expect({ code, left, presented }).toMatchObject({ code: 0, left: [] })
    expect(newFiles(before, folder)).toEqual([...kind.written].sort())
    if (kind.database) await withDatabase(kind, (db) => change(db, paragraph(presented, 'Change it first:')))

    const [entry = ''] = /(?<=Add to ).*(?=:)/.exec(presented) ?? []
    addToApp(join(folder, entry), paragraph(presented, 'Add to'))
    const commands = paragraph(presented, 'Start on your machine:')
    const start = commands.pop() ?? ''
    await shell(folder, commands.join(' && '))
    const { url, output } = await startApp(folder, start)

    expect(await signUpAndIn(url, output)).toEqual({ hello: person.email })
    if (kind.database)
      await withDatabase(kind, async (db) => expect(await db('users').orderBy('id').pluck('email')).toEqual([older.email, person.email]))
  })
}, 120_000)

test('what it wrote in TypeScript compiles under strict', () => {
  const options: ts.CompilerOptions = {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    lib: ['lib.es2023.d.ts'],
    paths: { doorward: [join(scratch, 'express5/node_modules/doorward/dist/index.d.ts')] }, // read once, and both are the same
    noEmit: true,
    strict: true,
    exactOptionalPropertyTypes: true,
    noPropertyAccessFromIndexSignature: true,
    noUncheckedIndexedAccess: true,
    noUnusedLocals: true,
    isolatedModules: true,
    skipLibCheck: true,
    types: ['node'],
    typeRoots: [join(scratch, 'express5/node_modules/@types')],
  }
  const files = kinds.map(folderOf).flatMap((folder) => filesIn(folder).map((path) => join(folder, path)))
  const program = ts.createProgram(
    files.filter((path) => /(auth|_doorward)\.ts$/.test(path)),
    options,
  )

  expect(program.getRootFileNames()).toHaveLength(3)
  expect(ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => [file?.fileName, messageText])).toEqual([])
}, 60_000)

/** Packages beside the apps, as npm lays them out: ours as it is packed, over the one Express that is installed. */
function install(folder: string, major: string): void {
  const link = (name: string, target = name) => {
    mkdirSync(dirname(join(folder, 'node_modules', name)), { recursive: true })
    symlinkSync(join(root, 'node_modules', target), join(folder, 'node_modules', name), 'dir')
  }
  for (const name of Object.keys(manifest.dependencies)) link(name)
  for (const name of ['knex', 'better-sqlite3', 'tsx', 'typescript', '@types/node']) link(name)
  for (const name of ['express', '@types/express']) link(name, major === '4' ? `${name}4` : name)
  for (const part of ['package.json', 'dist']) cpSync(join(root, part), join(folder, 'node_modules/doorward', part), { recursive: true })
  chmodSync(join(folder, 'node_modules/doorward/dist/cli.js'), 0o755)
  mkdirSync(join(folder, 'node_modules/.bin'))
  symlinkSync('../doorward/dist/cli.js', join(folder, 'node_modules/.bin/doorward'))
  symlinkSync('../knex/bin/cli.js', join(folder, 'node_modules/.bin/knex'))
  symlinkSync(`../tsx/dist/cli.mjs`, join(folder, 'node_modules/.bin/tsx'))
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, text)
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8', withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
}

function newFiles(before: readonly string[], folder: string): string[] {
  const found = filesIn(folder).filter((path) => !before.includes(path))
  return found.map((path) => path.replace(/\d{14}/, '<time>')).sort()
}

/** The indented lines below a heading. */
function paragraph(presented: string, heading: string): string[] {
  const [, lines = ''] = new RegExp(`^.*${heading}.*\\n((?: {2}.*\\n)+)`, 'm').exec(presented) ?? []
  return lines
    .trimEnd()
    .split('\n')
    .map((line) => line.trim())
}

/** As its owner pastes them: the import beside the others, the router behind `express()`, and a route of the owner's own. */
function addToApp(path: string, [load = '', mount = '']: readonly string[]): void {
  const route = "app.get('/hello', auth.guards.requireUser(), (req, res) => { res.json({ hello: auth.guards.getUser(req).email }) })"
  const [first = '', ...rest] = readFileSync(path, 'utf8').split('\n')
  const text = rest.join('\n').replace('const app = express()', `const app = express()\n${mount}\n${route}`)
  writeFileSync(path, `${first}\n${load}\n${text}`)
}

/** What a shell of somebody has who never heard of doorward. */
function environment(): Record<string, string | undefined> {
  const { PATH, HOME } = process.env
  return { PATH, HOME, npm_config_update_notifier: 'false' }
}

/** npx takes a second to find what stands here; test/package/readme.test.ts has it look. */
const npx = `npx() { [ "$1" = --no-install ] && shift; local name=$1; shift; "../node_modules/.bin/$name" "$@"; }`

async function shell(folder: string, commands: string): Promise<void> {
  const child = spawn('bash', ['-c', `${npx}; ${commands}`], { cwd: folder, env: environment(), stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${commands}\n${output}`)
}

async function startApp(folder: string, command: string): Promise<{ url: string; output: () => string }> {
  const port = await freePort()
  const url = `http://localhost:${port}`
  const env = { ...environment(), PORT: String(port), AUTH_PUBLIC_URL: url }
  const child = spawn('bash', ['-c', `exec ${command.replace('npx ', '../node_modules/.bin/')}`], {
    cwd: folder,
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running.push(child)
  let printed = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (printed += chunk))
  const hasStarted = () => {
    if (!printed.includes('listening')) throw new Error(`The app does not start:\n${printed}`)
  }
  await vi.waitFor(hasStarted, { timeout: 30_000, interval: 100 })
  return { url, output: () => printed }
}

const person = { email: 'ada@example.com', password: 'three quiet green rivers' }

/** Over every delivery: cookies and a token are sent back, whichever came. */
async function signUpAndIn(url: string, output: () => string): Promise<unknown> {
  const post = (path: string, body: object) =>
    fetch(`${url}${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  expect((await post('/auth/signup', person)).status).toBe(201)
  const link = await vi.waitUntil(() => /\/auth\/activate\/\S+/.exec(output())?.[0], { timeout: 10_000 })
  expect((await fetch(`${url}${link}`, { method: 'POST' })).status).toBe(200)
  const login = await post('/auth/login', person)
  expect(login.status).toBe(200)
  const { access_token: token } = (await login.json()) as { access_token?: string }
  const cookie = login.headers
    .getSetCookie()
    .map((line) => line.split(';', 1)[0])
    .join('; ')
  const hello = await fetch(`${url}/hello`, { headers: { cookie, ...(token && { authorization: `Bearer ${token}` }) } })
  return hello.json()
}

const older = { email: 'grace@example.com', password_hash: `$2b$12$${'x'.repeat(53)}`, first_name: 'Grace' }

/** As such tables are: fewer columns than we need, and one that we do not know. */
async function makeUsersTable(db: Knex): Promise<void> {
  await db.schema.createTable('users', (table) => {
    table.increments()
    table.string('email').notNullable().unique()
    table.string('password_hash').notNullable()
    table.string('first_name').notNullable()
    table.dateTime('created_at').notNullable()
  })
  await db('users').insert({ ...older, created_at: Date.now() })
}

async function change(db: Knex, statements: readonly string[]): Promise<void> {
  const columns = ['is_active', 'updated_at', 'email_verified_at']
  expect(statements).toEqual(columns.map((column) => expect.stringMatching(`^alter table "users" add column "${column}" .*;$`)))
  for (const statement of statements) await db.raw(statement)
}

async function withDatabase(kind: Kind, work: (db: Knex) => Promise<void>): Promise<void> {
  const db = knex({ client: 'better-sqlite3', connection: { filename: join(folderOf(kind), kind.database ?? '') }, useNullAsDefault: true })
  await work(db).finally(() => db.destroy())
}
