import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ensureBuilt, manifest, root } from './built-package'

/** Apps on the built package, of every kind of module that a host writes. */
const scratch = mkdtempSync(join(tmpdir(), 'doorward-cli-'))

const body = (load: string) => `${load}
console.log('the app says something')
const database = knex({ client: 'better-sqlite3', connection: { filename: 'app.sqlite' }, useNullAsDefault: true, pool: { min: 1, max: 1 } })
const makeAuth = async () => {
  await createAuthTables(database)
  return createAuthRouter({ settings: { ...settingsFromEnv(), publicUrl: 'https://app.example.test', backendLinks: true }, store: createKnexStore({ knex: database }) })
}
`
const imports =
  "import knexModule from 'knex'\nimport { createAuthRouter, createAuthTables, createKnexStore, settingsFromEnv } from 'doorward'\nconst knex = knexModule as any"
const apps: Readonly<Record<string, { type: string; file: string; text: string }>> = {
  'ES modules': { type: 'module', file: 'auth.js', text: `${body(imports.replace(' as any', ''))}export const auth = makeAuth` },
  CommonJS: {
    type: 'commonjs',
    file: 'auth.js',
    text: `${body("const knex = require('knex')\nconst { createAuthRouter, createAuthTables, createKnexStore, settingsFromEnv } = require('doorward')")}module.exports = makeAuth`,
  },
  'TypeScript in ES modules': { type: 'module', file: 'src/auth.ts', text: `${body(imports)}export const auth: unknown = makeAuth` },
  'TypeScript in CommonJS': { type: 'commonjs', file: 'src/auth.ts', text: `${body(imports)}export default makeAuth as unknown` },
}

beforeAll(() => {
  ensureBuilt()
  for (const [name, { type, file, text }] of Object.entries(apps)) {
    const folder = folderOf(name)
    mkdirSync(join(folder, 'src'), { recursive: true })
    mkdirSync(join(folder, 'node_modules'))
    for (const installed of ['express', 'knex', 'better-sqlite3', 'tsx']) link(folder, installed, join(root, 'node_modules', installed))
    link(folder, 'doorward', root)
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, type }))
    writeFileSync(join(folder, '.env'), 'AUTH_JWT_SECRET=a secret of the file, forty characters or so\nNODE_ENV=development\n')
    writeFileSync(join(folder, file), text)
  }
}, 300_000)

afterAll(() => rmSync(scratch, { recursive: true, force: true }))

function folderOf(name: string): string {
  return join(scratch, name.replaceAll(' ', '-'))
}

function link(folder: string, name: string, target: string): void {
  symlinkSync(target, join(folder, 'node_modules', name), 'dir')
}

function doorward(folder: string, args: string[], stdin = ''): Promise<{ code: number; out: string; err: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [join(root, 'dist/cli.js'), ...args],
      { cwd: folder, env: { PATH: process.env.PATH }, timeout: 30_000 },
      (error, out, err) => resolve({ code: error ? Number(error.code) : 0, out, err }),
    )
    child.stdin?.end(stdin)
  })
}

describe.each(Object.keys(apps))('the built command in an app of %s', (name) => {
  test('makes an account, ends though the app holds its database open, and prints its result alone', async () => {
    const folder = folderOf(name)
    const created = await doorward(
      folder,
      ['users', 'create', 'ada@example.com', '--password-stdin', '--json'],
      'a long enough pass phrase',
    )
    const presented = await doorward(folder, ['users', 'show', 'ada@example.com', '--json'])

    expect(created).toMatchObject({ code: 0, out: expect.stringContaining('ada@example.com') })
    expect(JSON.parse(presented.out)).toEqual(JSON.parse(created.out).user)
    expect(created.err).toContain('the app says something')
  }, 60_000)
})

test('TypeScript without tsx that this Node does not read is exit 2 with what to install', async () => {
  const folder = folderOf('TypeScript in CommonJS')
  unlinkSync(join(folder, 'node_modules/tsx')) // the link alone: rmSync of Node 24 sees the folder behind it
  const { code, err } = await doorward(folder, ['purge'])

  // Node 22.18 and later strip types, but read no `import` in a package of CommonJS.
  expect([code, err]).toEqual([2, expect.stringContaining('npm install --save-dev tsx')])
}, 60_000)

test('wrong usage is exit 2, and --json is one document', async () => {
  expect((await doorward(scratch, ['other'])).code).toBe(2)
  expect(JSON.parse((await doorward(scratch, ['users', 'list', '--json'])).out)).toMatchObject({ error: { code: 'USAGE' } })
})

/** The files of the library, without the command. */
let parts: string[] = []
beforeAll(() => {
  parts = readdirSync(join(root, 'dist')).filter((name) => name.endsWith('.js') && name !== 'cli.js')
})

test('what only the command needs is in its own file: no app installs it, and the library does not load it', () => {
  const command = readFileSync(join(root, 'dist/cli.js'), 'utf8')
  const library = parts.map((name) => readFileSync(join(root, 'dist', name), 'utf8')).join('')
  for (const name of ['csv-parse', 'csv-stringify']) {
    expect(manifest.dependencies).not.toHaveProperty(name)
    expect(command).not.toMatch(new RegExp(`(require|import)\\("${name}`))
    expect(command).toContain(`node_modules/${name}/`)
    expect(library).not.toContain(name)
  }
})

test('a host loads the doctor, the code of the command, the test kit and Passport when it uses them, and not before', async () => {
  const own = ['client-flow', 'examine', 'operations', 'testing'] // files that only some hosts use
  expect(parts).toEqual(expect.arrayContaining(own.map((name) => `${name}.js`)))

  const app = `
    const { createAuthRouter, createKnexStore } = require('doorward')
    const database = require('knex')({ client: 'better-sqlite3', connection: { filename: ':memory:' }, useNullAsDefault: true })
    const settings = { jwtSecret: 'an-only-secret-for-this-test-7f3b9a61', publicUrl: 'https://app.example.test', backendLinks: true }
    const logger = { info() {}, warn() {}, error() {} }
    const auth = createAuthRouter({ settings, store: createKnexStore({ knex: database }), logger })
    const loaded = () => Object.keys(require.cache).flatMap((path) => /(?:node_modules|dist)[/](passport|${own.join('|')})/.exec(path)?.[1] ?? [])
    const atBoot = loaded()
    auth.doctor().then(async () => {
      console.log(JSON.stringify([atBoot, loaded()]))
      await database.destroy()
    })`
  const folder = folderOf('CommonJS')
  writeFileSync(join(folder, 'parts.js'), app)
  const { stdout } = await promisify(execFile)(process.execPath, ['parts.js'], { cwd: folder })
  expect(JSON.parse(stdout)).toEqual([[], ['examine']])
}, 60_000)
