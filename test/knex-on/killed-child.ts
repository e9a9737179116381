// A process of an app whose database session is ended by the server inside a sign-up. Prints what its requests answered.
import express from 'express'
import knex, { type Knex } from 'knex'
import pg from 'pg'
import request from 'supertest'
import { createAuthRouter, createAuthTables, createKnexStore, type SignupOptions } from '../../src'
import { openPool, type PoolKind } from './pools'

const { kind, config } = JSON.parse(process.argv[2] ?? '') as { kind: PoolKind | 'own connectionPool'; config: Knex.Config }
const isPostgres = kind === 'pg' || kind === 'own connectionPool'

function poolOf(): { knex: Knex; close(): Promise<unknown> } {
  if (kind !== 'own connectionPool') return openPool(kind, config)
  const pool = new pg.Pool({
    connectionString: String(config.connection),
    options: `-c search_path=${[config.searchPath].flat().join(',')}`,
  })
  pool.on('error', () => undefined)
  return { knex: knex({ client: 'pg', connectionPool: pool }), close: () => pool.end() }
}

function rowsOf(answer: { rows?: { id: number }[] } & { id: number }[][]): { id: number }[] {
  return answer.rows ?? answer[0] ?? []
}

async function main(): Promise<void> {
  const app = poolOf()
  const administrator = knex(config)
  await createAuthTables(app.knex)
  let isKilling = true
  const onSignup: SignupOptions['onSignup'] = async (_user, _body, _store, { trx }) => {
    if (!isKilling || !trx) return
    isKilling = false
    const [row] = rowsOf(await trx.raw(isPostgres ? 'select pg_backend_pid() as id' : 'select connection_id() as id'))
    await administrator.raw(isPostgres ? `select pg_terminate_backend(${row?.id})` : `kill connection ${row?.id}`)
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  const auth = createAuthRouter({
    store: createKnexStore({ knex: app.knex }),
    environment: 'test',
    settings: {
      jwtSecret: 'kJ7-Vb2x_Zq81LpTnYw4RsCd5GfHm0aE3uIoX9vQ6tN',
      autoActivate: true,
      backendLinks: true,
      publicUrl: 'http://localhost',
    },
    logger: { info() {}, warn() {}, error() {} },
    signup: { onSignup },
  })
  const served = express().use('/auth', auth)
  const signUp = (email: string) => request(served).post('/auth/signup').send({ email, password: 'a quiet harbour in winter' })
  const killed = await signUp('one@example.test')
  const next = await signUp('one@example.test')
  process.stdout.write(JSON.stringify({ killed: [killed.status, killed.body.code], next: next.status }))
  await auth.drain()
  await administrator.destroy()
  await app.knex.destroy()
  await app.close()
}

void main()
