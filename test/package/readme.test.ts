import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import supertest from 'supertest'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freePort } from '../support/free-port'
import { ensureBuilt, root } from './built-package'

// README.md's first app, as it stands there, in a folder of its own: only the port is another.
const folder = mkdtempSync(join(tmpdir(), 'doorward-readme-'))
const readme = readFileSync(join(root, 'README.md'), 'utf8')
const [, code = ''] = /```js\n([\s\S]*?)```/.exec(readme) ?? []

let app: ChildProcessWithoutNullStreams
let printed = ''
let warned = ''
let url = ''

beforeAll(async () => {
  ensureBuilt()
  const port = await freePort()
  url = `http://localhost:${port}`
  mkdirSync(join(folder, 'node_modules'))
  symlinkSync(root, join(folder, 'node_modules/doorward'))
  for (const name of ['express', 'knex', 'better-sqlite3'])
    symlinkSync(join(root, 'node_modules', name), join(folder, 'node_modules', name))
  writeFileSync(join(folder, 'app.mjs'), code.replaceAll('3000', String(port)))
  const env = { ...process.env, AUTH_JWT_SECRET: randomBytes(48).toString('base64') }
  app = spawn(process.execPath, ['app.mjs'], { cwd: folder, env })
  for (const stream of [app.stdout, app.stderr]) stream.on('data', (chunk) => (printed += chunk))
  app.stderr.on('data', (chunk) => (warned += chunk))
  await until(async () => (await fetch(`${url}/hello`)).status === 401)
}, 60_000)

afterAll(async () => {
  if (app.exitCode === null && app.kill()) await once(app, 'exit')
  rmSync(folder, { recursive: true, force: true })
})

test('from an empty folder to a person in a guarded route, by what README.md says', async () => {
  const person = { email: 'ada@example.com', password: 'three quiet green rivers' }
  const visitor = supertest.agent(url)

  expect((await visitor.post('/auth/signup').send(person)).status).toBe(201)
  await until(async () => /\/auth\/activate\/\S+/.test(printed))
  const [link = ''] = /\/auth\/activate\/\S+/.exec(printed) ?? []
  expect((await visitor.get(link).set('Accept', 'text/html')).text).toContain('<form method="post"')
  expect((await visitor.post(link).type('form').set('Accept', 'text/html').send({})).status).toBe(200)
  expect((await visitor.post('/auth/login').send(person)).status).toBe(200)

  expect((await visitor.get('/hello')).body).toEqual({ hello: 'ada@example.com' })
  expect((await supertest(url).get('/hello')).status).toBe(401)
}, 60_000)

test('nothing of it is a warning', () => {
  expect(warned).not.toMatch(/warn|doorward:/i)
})

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let left = 300; left > 0; left--) {
    if (await isSo().catch(() => false)) return
    if (app.exitCode !== null) break
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`It did not come to pass. The app printed:\n${printed}`)
}
