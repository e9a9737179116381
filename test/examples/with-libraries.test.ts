import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import { join } from 'node:path'
import pg from 'pg'
import supertest from 'supertest'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as withDrizzle from '../../examples/with-drizzle/app'
import * as withKysely from '../../examples/with-kysely/app'
import { diagnosticsOf, programOf } from '../support/compile'
import { databases } from '../support/databases'
import { generatePrismaClient } from '../support/prisma-client'

const examples = join(import.meta.dirname, '../../examples')
const password = 'three quiet green rivers'
const postgres = (await databases()).find(({ name }) => name === 'postgres')

type Start = () => Promise<Server>

/** A pool of the app in a schema of its own. */
async function openPool() {
  const opened = await postgres?.open()
  if (!opened?.config) throw new Error('the test needs PostgreSQL')
  const schema = [opened.config.searchPath].flat().join(',')
  const pool = new pg.Pool({ connectionString: String(opened.config.connection), options: `-c search_path=${schema}` })
  return { pool, schema, close: () => opened.close() }
}

const apps: { library: string; start: Start }[] = [{ library: 'kysely', start: () => withKysely.start(0, ':memory:') }]
const closing: (() => Promise<unknown>)[] = []
if (postgres)
  apps.push(
    {
      library: 'drizzle',
      async start() {
        const { pool, close } = await openPool()
        closing.push(close)
        return withDrizzle.start(0, pool)
      },
    },
    {
      library: 'prisma',
      async start() {
        await generatePrismaClient(join(examples, 'with-prisma'))
        const { pool, schema, close } = await openPool()
        closing.push(close)
        const withPrisma: { start(port: number, pool: pg.Pool, schema: string): Promise<Server> } = await import(
          join(examples, 'with-prisma/app.ts')
        )
        return withPrisma.start(0, pool, schema)
      },
    },
  )

describe.each(apps)('the example with $library', ({ library, start }) => {
  let server: Server
  let url: string
  beforeAll(async () => {
    process.env.AUTH_JWT_SECRET = randomBytes(48).toString('base64')
    server = await start()
    if (!server.listening) await new Promise((resolve) => server.once('listening', resolve))
    const address = server.address()
    url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
  })
  afterAll(async () => {
    await new Promise((resolve) => server.close(resolve))
    await new Promise((resolve) => setTimeout(resolve, 100)) // the example closes its pool after its server
    for (const close of closing.splice(0)) await close()
  })

  test('begins with what it shows, and is on the page of the examples', () => {
    const source = readFileSync(join(examples, `with-${library}/app.ts`), 'utf8')
    expect(source).toMatch(/^\/\*\*\n \* [A-Z]/)
    expect(readFileSync(join(examples, '../docs/examples.md'), 'utf8')).toContain(`(../examples/with-${library}/app.ts)`)
  })

  test('signs a person up with the company, and leaves neither where the company is taken', async () => {
    const send = (body: object) => supertest(url).post('/companies').send(body)
    const logIn = (email: string) => supertest(url).post('/auth/login').send({ email, password })
    const made = await send({ email: 'ana@example.com', password, company: 'Rivers' })
    expect([made.status, made.body]).toEqual([201, { owner: expect.any(String) }])
    expect((await logIn('ana@example.com')).body.user_id).toBe(made.body.owner)

    expect((await send({ email: 'bea@example.com', password, company: 'Rivers' })).status).toBe(409)
    expect((await logIn('bea@example.com')).status).toBe(401)
    expect((await send({ email: 'bea@example.com', password, company: 'Hills' })).status).toBe(201)
    expect((await send({ email: 'ana@example.com', password, company: 'Lakes' })).body.code).toBe('EMAIL_TAKEN')
    expect((await send({ email: 'cleo@example.com', password, company: 'Lakes' })).status).toBe(201)
    expect((await send({})).status).toBe(422)
  })
})

test.runIf(postgres)('the example with prisma compiles against the client that Prisma generates', async () => {
  const folder = join(examples, 'with-prisma')
  await generatePrismaClient(folder)
  const file = join(folder, 'app.ts')
  const units = new Map([[file, readFileSync(file, 'utf8')]])
  expect(diagnosticsOf(programOf(units), units).map(({ messageText }) => messageText)).toEqual([])
})
