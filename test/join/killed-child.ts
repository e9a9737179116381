// A process of an app whose database session is ended by the server inside a joined transaction. Prints what its requests answered.
import express from 'express'
import knex, { type Knex } from 'knex'
import request from 'supertest'
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler, type JoinedStore, type SqlRunner } from '../../src'
import type { DatabaseName } from '../support/databases'
import { type LibraryName, openLibrary } from './libraries'

const { library, database, config } = JSON.parse(process.argv[2] ?? '') as {
  library: LibraryName
  database: DatabaseName
  config: Knex.Config
}

async function main(): Promise<void> {
  const app = await openLibrary(library, database, config)
  const administrator = knex(config)
  await createAuthTables(app.knex)
  await administrator.schema.createTable('profiles', (table) => {
    table.string('user_id', 36).primary()
    table.string('company', 100)
  })
  let isKilling = true
  const killSession = async ({ run, dialect }: SqlRunner) => {
    if (!isKilling) return
    isKilling = false
    const isPostgres = dialect === 'postgresql'
    const { rows } = await run(isPostgres ? 'select pg_backend_pid() as id' : 'select connection_id() as id', [], 'rows')
    await administrator.raw(`${isPostgres ? 'select pg_terminate_backend' : 'kill connection '}(${rows[0]?.['id']})`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const store = createKnexStore({ knex: app.knex })
  const auth = createAuthRouter({
    store,
    environment: 'test',
    settings: {
      jwtSecret: 'kJ7-Vb2x_Zq81LpTnYw4RsCd5GfHm0aE3uIoX9vQ6tN',
      autoActivate: true,
      backendLinks: true,
      publicUrl: 'http://localhost',
    },
    logger: { info() {}, warn() {}, error() {} },
  })

  async function signUp(email: string): Promise<void> {
    let joined: JoinedStore | undefined
    let failure: unknown
    const work = app.transact(async ({ runner, addProfile }) => {
      try {
        joined = store.join(runner)
        const [user] = await auth.service.using(joined.store).signUp({ email, password: 'a quiet harbour in winter' })
        await addProfile(user.id, 'Acme')
        await killSession(runner)
        await auth.service.using(joined.store).findUser(user.id)
      } catch (error) {
        failure = error
        throw error
      }
    })
    await work.catch((error) => {
      joined?.rolledBack()
      throw failure ?? error // the library's own ROLLBACK fails too, and its error would hide the first one
    })
    joined?.committed()
  }

  const served = express().use(express.json())
  served.post('/sign-up', (req, res, next) => {
    signUp(req.body.email).then(() => res.status(201).end(), next)
  })
  served.use(errorHandler({ logger: { info() {}, warn() {}, error() {} } }))
  const post = () => request(served).post('/sign-up').send({ email: 'one@example.test' })
  const killed = await post()
  const next = await post()
  process.stdout.write(JSON.stringify({ killed: [killed.status, killed.body.code], next: next.status }))
  await auth.drain()
  await administrator.destroy()
  await app.knex.destroy()
  await app.close()
}

void main()
