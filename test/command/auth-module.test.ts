import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { ConfigurationError } from '../../src'
import { type Mounted, mount } from '../support/app'
import { databases, type OpenDatabase } from '../support/databases'
import { appFolder, doorward, emptyFolder } from './run-command'

let db: OpenDatabase
let mounted: Mounted

beforeAll(async () => {
  const [database] = await databases()
  if (!database) throw new Error('no database')
  db = await database.open({ memory: true })
  mounted = await mount({ knex: db.knex })
})

afterAll(async () => {
  await mounted.close()
  await db.close()
})

test('the module exports the router, or a function that returns it, also later', async () => {
  for (const exported of [mounted.auth, () => mounted.auth, async () => mounted.auth])
    expect(await doorward('purge --json', { folder: appFolder(exported) })).toMatchObject({ exitCode: 0 })
})

test('by default, and as the default export of CommonJS', async () => {
  const named = appFolder(mounted.auth)
  writeFileSync(join(named, 'other.mjs'), "export { auth as default } from './auth.mjs'\n")
  writeFileSync(join(named, 'nested.mjs'), "import { auth } from './auth.mjs'\nexport default { auth }\n")

  expect((await doorward('purge --auth other.mjs', { folder: named })).exitCode).toBe(0)
  expect((await doorward('purge --auth nested.mjs', { folder: named })).exitCode).toBe(0)
})

test('it is looked for in the places that the docs name, and package.json may name another', async () => {
  const folder = emptyFolder()
  const none = await doorward('purge', { folder })
  expect(none).toMatchObject({ exitCode: 2, out: '' })
  for (const place of ['auth.', 'src/auth.', 'lib/auth.', 'server/auth.', '--auth']) expect(none.err).toContain(place)

  mkdirSync(join(folder, 'server'))
  appFolder(mounted.auth, join(folder, 'server'))
  expect((await doorward('purge', { folder })).exitCode).toBe(0)
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ doorward: { auth: 'nowhere.mjs' } }))
  expect(await doorward('purge', { folder })).toMatchObject({ exitCode: 2, err: expect.stringContaining('nowhere.mjs') })
})

test('.env is read before it, and what is set already stays', async () => {
  const folder = appFolder(mounted.auth)
  writeFileSync(join(folder, '.env'), 'FIRST=of the file\nSECOND="of the file"\n')
  writeFileSync(join(folder, 'other.env'), 'FIRST=of the other\n')
  const run = async (flags: string) => {
    const env: Record<string, string | undefined> = { SECOND: 'set' }
    const { exitCode } = await doorward(`purge ${flags}`, { folder, env })
    return { exitCode, env }
  }

  expect(await run('')).toEqual({ exitCode: 0, env: { FIRST: 'of the file', SECOND: 'set' } })
  expect(await run('--env-file other.env')).toEqual({ exitCode: 0, env: { FIRST: 'of the other', SECOND: 'set' } })
  expect(await run('--no-env-file')).toEqual({ exitCode: 0, env: { SECOND: 'set' } })
  expect((await run('--env-file missing.env')).exitCode).toBe(2)
})

test('a module that throws is exit 1 with its sentence, and one without a router is exit 2', async () => {
  const broken = appFolder(() => {
    throw new ConfigurationError('createAuthRouter(): jwtSecret is missing.')
  })
  expect(await doorward('purge', { folder: broken })).toEqual({ exitCode: 1, out: '', err: 'createAuthRouter(): jwtSecret is missing.\n' })
  expect(JSON.parse((await doorward('purge --json', { folder: broken })).out)).toMatchObject({ error: { code: 'BOOT' } })
  expect(await doorward('purge', { folder: appFolder({}) })).toMatchObject({ exitCode: 2, err: expect.stringContaining('no router') })
})

test('keys reads the same file', async () => {
  const folder = emptyFolder()
  const { out } = await doorward('keys new')
  writeFileSync(join(folder, '.env'), `AUTH_JWT_KEYS='[${out.trim()}]'\n`)

  expect((await doorward('keys list', { folder })).out).toContain('signs')
})
