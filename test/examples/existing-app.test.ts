import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Express } from 'express'
import supertest from 'supertest'
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import * as after from '../../examples/existing-app/after'
import * as before from '../../examples/existing-app/before'
import { move } from '../../examples/existing-app/move'
import { databases, type OpenDatabase } from '../support/databases'

const folder = join(import.meta.dirname, '../../examples/existing-app')
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
    const browser = supertest.agent(old)
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
      const browser = supertest.agent(app)
      const login = await browser.post('/auth/login').send({ email, password })
      expect([login.status, login.body.user_id, login.body.access_token]).toEqual([200, String(rows[index].id), null])
      expect((await browser.get('/')).text).toContain(`Hello, ${first_name}`)
      expect((await browser.get('/auth/me')).body).toMatchObject({ email: email.toLowerCase(), fields: { firstName: first_name } })
    }
    const hashes = await opened.knex('users').orderBy('id').pluck('password_hash')
    expect(hashes.every((hash) => hash.startsWith('$argon2id$'))).toBe(true)
    const browser = supertest.agent(app)
    await browser.post('/auth/login').send(ada)
    expect((await browser.get('/')).text).toContain('A loom')
  })

  test('after: a page sends a stranger to the login page, which can come back; the API answers 401', async () => {
    const app = supertest(await moved())
    expect((await app.get('/?page=2')).headers.location).toBe('/login?next=%2F%3Fpage%3D2')
    expect((await app.get('/login')).text).toContain('/forms.js')
    expect((await app.get('/api/orders')).status).toBe(401)
  })

  test('after: somebody registers with a name and is in at once; a wrong password is refused in a sentence', async () => {
    const browser = supertest.agent(await moved())
    const person = { email: 'new@example.com', password: 'eight green bicycles', firstName: 'Nia', lastName: 'New' }

    expect((await browser.post('/auth/signup').send({ ...person, firstName: undefined })).status).toBe(422)
    expect((await browser.post('/auth/signup').send(person)).status).toBe(201)
    expect((await browser.get('/')).text).toContain('Hello, Nia')
    expect(await opened.knex('users').where({ email: person.email }).first()).toMatchObject({
      first_name: 'Nia',
      last_name: 'New',
      role: 'member',
    })
    expect((await browser.post('/auth/login').send({ ...grace, password: 'wrong' })).body.detail).toEqual(expect.any(String))
    expect((await browser.post('/auth/logout').send({})).status).toBe(204)
    expect((await browser.get('/')).status).toBe(302)
  })

  test('after: the role decides who is an administrator, and the API answers the other origin', async () => {
    const app = await moved()
    const [admin, member] = [supertest.agent(app), supertest.agent(app)]
    await admin.post('/auth/login').send(root)
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

test('what the page sends is what the routes take: the forms of the pages have their fields', () => {
  const fields = (name: string) =>
    [...readFileSync(join(folder, 'views', name), 'utf8').matchAll(/name="(?:<%= script \? ')?(\w+)/g)].map(([, field]) => field)
  expect(fields('login.ejs')).toEqual(['viewport', 'email', 'password'])
  expect(fields('register.ejs')).toEqual(['viewport', 'firstName', 'lastName', 'email', 'password'])
})
