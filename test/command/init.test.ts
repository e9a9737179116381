import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { doorward, emptyFolder, personWho } from './run-command'

// What stands in the files, and that they make an app: test/package/init.test.ts.

function folderWith(files: Record<string, string>): string {
  const folder = emptyFolder()
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(join(folder, path, '..'), { recursive: true })
    writeFileSync(join(folder, path), text)
  }
  return folder
}

const knexfile = (more = '') => `module.exports = { client: 'pg', connection: 'postgres://127.0.0.1:1/none'${more} }\n`
const filesIn = (folder: string) => readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) => /\.\w+$/.test(path))
const textsIn = (folder: string) => filesIn(folder).map((path) => readFileSync(join(folder, path), 'utf8'))

test.each([
  ['auth.js in a folder of JavaScript', {}, 'auth.js', "require('doorward')"],
  ['auth.js as a module with type: module', { 'package.json': '{ "type": "module" }' }, 'auth.js', "from 'doorward'"],
  ['auth.mjs beside an entry in .mjs', { 'package.json': '{ "main": "start.mjs" }', 'start.mjs': '' }, 'auth.mjs', "from 'doorward'"],
  ['auth.ts with a tsconfig.json', { 'tsconfig.json': '{}' }, 'auth.ts', "from 'doorward'"],
  ['src/auth.ts where there is a src', { 'tsconfig.json': '{}', 'src/server.ts': '' }, 'src/auth.ts', "from 'doorward'"],
])('it writes %s', async (_, files, path, load) => {
  const folder = folderWith(files)
  const { exitCode, out } = await doorward('init --yes', { folder })

  expect({ exitCode, out }).toMatchObject({ exitCode: 0, out: expect.stringContaining(`Written: ${path}, .env.example\n`) })
  expect(readFileSync(join(folder, path), 'utf8')).toContain(load)
})

test.each([
  ['Kysely', 'kysely', 'pg', "const pg = require('pg')", 'const pool = new pg.Pool({ connectionString: DATABASE_URL })'],
  ['Drizzle', 'drizzle-orm', 'mysql2', "const { createPool } = require('mysql2')", 'const pool = createPool(DATABASE_URL)'],
  ['Prisma', '@prisma/client', 'pg', "const pg = require('pg')", 'const pool = new pg.Pool({ connectionString: DATABASE_URL })'],
  ['Kysely', 'kysely', 'better-sqlite3', "const Database = require('better-sqlite3')", "const pool = new Database('app.sqlite')"],
])('an app with %s (%s) and %s gets one pool for both, and no Knex of its own', async (library, name, client, load, pool) => {
  const folder = folderWith({ 'package.json': JSON.stringify({ dependencies: { [name]: '*' } }) })
  const { exitCode } = await doorward(`init --yes --client ${client}`, { folder })
  const text = readFileSync(join(folder, 'auth.js'), 'utf8')

  expect(exitCode).toBe(0)
  for (const line of [load, `// Give this pool to ${library} too`, pool, 'const db = knexOn(pool)', 'module.exports = { auth, pool }'])
    expect(text).toContain(line)
  expect(text).not.toContain("require('knex')")
})

test('the pool of a library in TypeScript is exported, with the types that it needs', async () => {
  const folder = folderWith({ 'package.json': '{ "devDependencies": { "drizzle-orm": "*" } }', 'tsconfig.json': '{}' })
  const { out } = await doorward('init --yes --client pg --json', { folder })
  const text = readFileSync(join(folder, 'auth.ts'), 'utf8')

  expect(text).toContain("import pg from 'pg'")
  expect(text).toContain('export const pool = new pg.Pool')
  expect(JSON.parse(out).install).toEqual([
    'npm install doorward express knex pg nodemailer',
    'npm install --save-dev typescript tsx @types/node @types/express @types/pg',
  ])
})

test('a knexfile comes before a library', async () => {
  const folder = folderWith({ 'package.json': '{ "dependencies": { "kysely": "*" } }', 'knexfile.js': knexfile() })
  await doorward('init --yes', { folder })
  expect(readFileSync(join(folder, 'auth.js'), 'utf8')).toContain('const db = knex(knexfile)')
})

test('a file that is there is named, and nothing is written; --print prints what it would have been', async () => {
  const folder = folderWith({ 'lib/auth.cjs': 'mine' })
  const refused = await doorward('init --yes', { folder })
  const printed = await doorward('init --yes --print', { folder })

  expect(refused).toMatchObject({ exitCode: 1, out: '', err: expect.stringContaining('lib/auth.cjs') })
  expect(printed).toMatchObject({
    exitCode: 1,
    out: expect.stringContaining('--- auth.js\n'),
    err: expect.stringContaining('lib/auth.cjs'),
  })
  expect(filesIn(folder)).toEqual(['lib/auth.cjs'])
  expect(readFileSync(join(folder, 'lib/auth.cjs'), 'utf8')).toBe('mine')
  expect(JSON.parse((await doorward('init --yes --json', { folder })).out)).toMatchObject({ error: { code: 'FILE_EXISTS' } })
})

test('a second run writes nothing, nor does one beside an older migration of ours or a module that package.json names', async () => {
  const folder = folderWith({})
  expect((await doorward('init --yes', { folder })).exitCode).toBe(0)
  const before = textsIn(folder)
  expect((await doorward('init --yes --client pg', { folder })).exitCode).toBe(1)
  expect(textsIn(folder)).toEqual(before)

  const migrated = folderWith({ 'knexfile.js': knexfile(), 'migrations/20260101000000_doorward.js': '' })
  expect(await doorward('init --yes', { folder: migrated })).toMatchObject({ exitCode: 1, err: expect.stringContaining('_doorward.js') })
  const named = folderWith({ 'package.json': '{ "doorward": { "auth": "login.js" } }' })
  expect(await doorward('init --yes', { folder: named })).toMatchObject({ exitCode: 1, err: expect.stringContaining('login.js') })
  expect([existsSync(join(migrated, 'auth.js')), existsSync(join(named, 'auth.js'))]).toEqual([false, false])
})

test('all files or none: what was written before one that cannot be is taken back', async () => {
  // The directory of the migrations cannot be made, because a file has its name.
  const folder = folderWith({ 'knexfile.js': knexfile(", migrations: { directory: 'steps/new' }"), steps: '' })
  const { exitCode, err } = await doorward('init --yes', { folder })

  expect({ exitCode, err }).toEqual({
    exitCode: 1,
    err: expect.stringMatching(/^steps\/new\/\d{14}_doorward\.js cannot be written, so nothing was/),
  })
  expect(filesIn(folder)).toEqual(['knexfile.js'])
})

test('--print writes nothing, and with --json holds the files', async () => {
  const folder = folderWith({ 'knexfile.js': knexfile() })
  const { exitCode, out, err } = await doorward('init --yes --print --json', { folder })
  const { files, lines } = JSON.parse(out) as { files: { path: string; text: string }[]; lines: string[] }

  expect({ exitCode, err }).toEqual({ exitCode: 0, err: 'No users table was looked for: knex is not installed.\n' })
  expect(filesIn(folder)).toEqual(['knexfile.js'])
  expect(files.map(({ path }) => path)).toEqual(['auth.js', expect.stringMatching(/^migrations\/\d{14}_doorward\.js$/), '.env.example'])
  expect(files[0]?.text).toContain('const db = knex(knexfile)')
  expect(lines).toEqual(["const { auth } = require('./auth')", "app.use('/auth', auth)"])
})

test('--json says what was written, and what to do', async () => {
  const { out } = await doorward('init --yes --client mysql2 --json', { folder: folderWith({ 'tsconfig.json': '{}' }) })

  expect(JSON.parse(out)).toEqual({
    written: ['auth.ts', '.env.example'],
    install: ['npm install doorward express knex mysql2 nodemailer', 'npm install --save-dev typescript tsx @types/node @types/express'],
    lines: ["import { auth } from './auth'", "app.use('/auth', auth)"],
    start: [expect.stringContaining('AUTH_JWT_SECRET'), expect.stringContaining('DATABASE_URL='), 'npx --no-install doorward migrate up'],
    users_table: null,
  })
})

test('no secret is in any file, and every value of .env.example is empty', async () => {
  const folder = folderWith({
    '.env': 'AUTH_JWT_SECRET=a secret of somebody\n',
    'knexfile.js': knexfile().replace('127', 'ada:hidden@127'),
    'tsconfig.json': '{}',
  })
  const { out } = await doorward('init --yes --providers google,github', { folder })
  const example = readFileSync(join(folder, '.env.example'), 'utf8')

  for (const text of [out, ...textsIn(folder).filter((text) => text.includes('doorward'))]) expect(text).not.toMatch(/of somebody|hidden/)
  const variables = example.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
  expect(variables.filter((line) => !/^[A-Z_]+=$/.test(line))).toEqual([])
  expect(variables).toEqual(expect.arrayContaining(['AUTH_JWT_SECRET=', 'DATABASE_URL=', 'OAUTH_GITHUB_CLIENT_SECRET=']))
  expect(example).toContain('npx --no-install doorward secret')
})

test('.env.example that is there stays, and its lines are printed', async () => {
  const folder = folderWith({ '.env.example': 'PORT=3000\n' })
  const { exitCode, out } = await doorward('init --yes', { folder })

  expect({ exitCode, out }).toMatchObject({ exitCode: 0, out: expect.stringContaining('\n  AUTH_JWT_SECRET=\n') })
  expect(readFileSync(join(folder, '.env.example'), 'utf8')).toBe('PORT=3000\n')
})

test('without a terminal nothing is asked: what is missing is exit 2 with the flags', async () => {
  const folder = folderWith({})
  const none = await doorward('init --delivery cookie', { folder })
  const all = await doorward('init --delivery cookie --client pg --providers none --pages no', { folder })

  expect(none).toEqual({ exitCode: 2, out: '', err: expect.stringContaining('--client, --providers, --pages, or --yes') })
  expect(all.exitCode).toBe(0)
})

test.each([
  ['cookie', true],
  ['both', true],
  ['session', false],
  ['bearer', false],
])('for delivery %s the file sets a grace period of 10 seconds: %s', async (delivery, isSet) => {
  const folder = folderWith({})
  await doorward(`init --delivery ${delivery} --client pg --providers none --pages no`, { folder })

  expect(readFileSync(join(folder, 'auth.js'), 'utf8').includes('refreshReuseGraceSeconds: 10,')).toBe(isSet)
})

test('on a terminal it asks what neither the flags nor the app say, and again for what is no answer', async () => {
  const terminal = personWho('tokens', 'both', 'oracle', 'mysql2', 'google', 'perhaps', 'n')
  const folder = folderWith({})
  expect((await doorward('init', { folder, terminal })).exitCode).toBe(0)
  expect(terminal.questions).toHaveLength(7)
  const text = readFileSync(join(folder, 'auth.js'), 'utf8')
  for (const part of ["'both'", 'mysql2', 'GoogleClient', 'backendLinks: true']) expect(text).toContain(part)

  const told = personWho()
  await doorward('init --providers none --pages no', { folder: folderWith({ 'knexfile.js': knexfile() }), terminal: told })
  expect(told.questions).toEqual([expect.stringContaining('session, cookie, bearer, both')])
})

test.each([
  'init more',
  'init --delivery post',
  'init --client oracle',
  'init --providers google,none',
  'init --pages maybe',
  'init --delivery bearer --pages yes --client pg --providers none',
  'init --strict',
])('wrong usage is exit 2, and nothing is written: %s', async (line) => {
  const folder = folderWith({})

  expect(await doorward(line, { folder, terminal: personWho() })).toMatchObject({ exitCode: 2, out: '' })
  expect(filesIn(folder)).toEqual([])
})

test('a knexfile that throws, or of another database, is exit 1 with the reason', async () => {
  const broken = await doorward('init --yes', { folder: folderWith({ 'knexfile.js': "throw new Error('no DATABASE_URL')\n" }) })
  const foreign = await doorward('init --yes', { folder: folderWith({ 'knexfile.js': "module.exports = { client: 'oracledb' }\n" }) })

  expect(broken).toMatchObject({
    exitCode: 1,
    err: expect.stringContaining('knexfile.js cannot be loaded: Failed with Error. --verbose shows'),
  })
  expect(foreign).toMatchObject({ exitCode: 1, err: expect.stringContaining('"oracledb"') })
})
