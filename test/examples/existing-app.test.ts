import { randomBytes } from 'node:crypto'
import type { Express } from 'express'
import supertest from 'supertest'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as after from '../../examples/existing-app/after'
import * as before from '../../examples/existing-app/before'
import { move } from '../../examples/existing-app/move'
import { browserOf } from '../support/browser'
import { databases, type OpenDatabase } from '../support/databases'

const origin = 'http://localhost:3000'
const people = [
  { email: 'ada@example.com', password: 'correct horse', first_name: 'Ada', last_name: 'Lovelace' },
  { email: 'Grace.Hopper@Example.com', password: 'battery staple', first_name: 'Grace', last_name: 'Hopper' },
  { email: 'root@example.com', password: 'only for admins', first_name: 'Root', last_name: 'Admin' },
]
const [ada, grace, root] = people as [(typeof people)[0], (typeof people)[0], (typeof people)[0]]

beforeAll(() => {
  process.env.AUTH_JWT_SECRET = randomBytes(48).toString('base64')
})

describe.each(await databases())('the shop before and after the move, on $name', (database) => {
  let opened: OpenDatabase
  let old: Express
  beforeEach(async () => {
    opened = await database.open()
    await before.createTables(opened.knex)
    old = before.createApp(opened.knex)
    for (const person of people) await supertest(old).post('/register').type('form').send(person)
    await opened.knex('users').where({ email: root.email }).update({ role: 'admin' })
    const { id } = await opened.knex('users').where({ email: ada.email }).first()
    await opened.knex('orders').insert({ user_id: id, what: 'A loom' })
  })
  afterEach(() => opened.close())

  const moved = async () => {
    await move(opened.knex)
    return after.createApp(opened.knex)
  }

  test('before: Passport logs a person in, pages and API know them, others are turned away', async () => {
    const browser = browserOf(old)
    expect((await browser.get('/')).headers.location).toBe('/login')
    expect((await browser.post('/login').type('form').send(ada)).headers.location).toBe('/')
    expect((await browser.get('/')).text).toMatch(/Hello, Ada[\s\S]*A loom/)
    expect((await browser.get('/admin')).status).toBe(403)
    expect((await browser.get('/api/orders').set('Origin', 'http://localhost:5173')).body).toMatchObject([{ what: 'A loom' }])
    await browser.post('/logout')
    expect((await browser.get('/')).headers.location).toBe('/login')
  })

  test('after: everybody logs in with their old password; ids and orders stay, and hashes become argon2id', async () => {
    const rows = await opened.knex('users').orderBy('id')
    const app = await moved()

    for (const [index, { email, password, first_name }] of people.entries()) {
      const browser = agentOf(app)
      expect((await browser.post('/login').type('form').send({ email, password })).headers.location).toBe(`${origin}/`)
      expect((await browser.get('/')).text).toContain(`Hello, ${first_name}`)
      expect((await browser.get('/auth/me')).body).toMatchObject({
        id: String(rows[index].id),
        email: email.toLowerCase(),
        fields: { firstName: first_name },
      })
    }
    const hashes = await opened.knex('users').orderBy('id').pluck('password_hash')
    expect(hashes.every((hash) => hash.startsWith('$argon2id$'))).toBe(true)
    const browser = agentOf(app)
    await browser.post('/login').type('form').send(ada)
    expect((await browser.get('/')).text).toContain('A loom')
  })

  test('after: a page sends a stranger to the login page and back, but to no other site; the API answers 401', async () => {
    const browser = agentOf(await moved())
    expect((await browser.get('/?page=2')).headers.location).toBe('/login?return_to=%2F%3Fpage%3D2')
    expect((await browser.get('/api/orders')).status).toBe(401)
    const login = (returnTo: string) => browser.post('/login').query({ return_to: returnTo }).type('form').send(ada)
    expect((await login('/?page=2')).headers.location).toBe(`${origin}/?page=2`)
    expect((await login('//evil.example/')).headers.location).toBe('/')
    expect((await login('http://')).headers.location).toBe('/')
  })

  test('after: a login is one session in the database, behind one cookie, and a logout ends it at once', async () => {
    const browser = agentOf(await moved())
    const login = await browser.post('/login').type('form').send(ada)
    const sessionCookies = login.headers['set-cookie'] as unknown as string[]
    expect(sessionCookies.filter((line) => /^(auth_session|access_token|refresh_token)=[^;]/.test(line))).toHaveLength(1)
    expect(await opened.knex('auth_sessions').select('kind')).toEqual([{ kind: 'session' }])

    const copy = sessionCookies.map((line) => line.split(';')[0]).join('; ')
    expect((await browser.post('/logout')).headers.location).toBe('/login')
    expect((await browser.get('/')).status).toBe(302)
    expect((await supertest(browser.app).get('/api/orders').set('Cookie', copy)).status).toBe(401)
  })

  test('after: somebody registers with a name and is in at once; what is refused is said on the form', async () => {
    const browser = agentOf(await moved())
    const person = { email: 'new@example.com', password: 'eight green bicycles', first_name: 'Nia', last_name: 'New' }

    const page = (await browser.get('/register')).text
    for (const field of Object.keys(person)) expect(page).toContain(`name="${field}"`)
    const nameless = await browser
      .post('/register')
      .type('form')
      .send({ ...person, first_name: '' })
    expect([nameless.status, nameless.text]).toEqual([422, expect.stringMatching(/<output role="alert">[A-Z]/)])
    expect((await browser.post('/register').type('form').send(person)).headers.location).toBe('/')
    expect((await browser.get('/')).text).toContain('Hello, Nia')
    expect(await opened.knex('users').where({ email: person.email }).first()).toMatchObject({
      first_name: 'Nia',
      last_name: 'New',
      role: 'member',
    })
    const wrong = await browser
      .post('/login')
      .type('form')
      .send({ ...grace, password: 'wrong' })
    expect([wrong.status, wrong.text]).toEqual([401, expect.stringContaining('invalid email or password')])
  })

  test('after: the role decides who is an administrator, and the API answers the other origin', async () => {
    const app = await moved()
    const [admin, member] = [agentOf(app), agentOf(app)]
    await admin.post('/login').type('form').send(root)
    const login = await member.post('/auth/login').set('Origin', 'http://localhost:5173').send(ada)

    expect([login.status, login.headers['access-control-allow-origin']]).toEqual([200, 'http://localhost:5173'])
    expect([(await admin.get('/admin')).status, (await member.get('/admin')).status]).toEqual([200, 403])
    const orders = await member.get('/api/orders').set('Origin', 'http://localhost:5173')
    expect([orders.body, orders.headers['access-control-allow-credentials']]).toEqual([
      [expect.objectContaining({ what: 'A loom' })],
      'true',
    ])
  })

  test('the move may run twice', async () => {
    await moved()
    await moved()
    expect(await opened.knex('users')).toHaveLength(people.length)
  })
})

/** A browser, which asks for pages. */
function agentOf(app: Express) {
  return Object.assign(browserOf(app).set('Accept', 'text/html'), { app })
}
