/**
 * An app with Kysely. doorward uses the database of the app, and a sign-up is committed together with the row of the company, or neither is.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx examples/with-kysely/app.ts
 *   curl -d '{"email":"ana@example.com","password":"three quiet green rivers","company":"Rivers"}' \
 *     -H 'content-type: application/json' localhost:3000/companies
 */
import Database from 'better-sqlite3'
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler, errors, knexOn, kyselyRunner } from 'doorward'
import express from 'express'
import { CompiledQuery, Kysely, SqliteDialect } from 'kysely'

interface Tables {
  companies: { name: string; owner: string }
}

export async function start(port = 3000, filename = 'app.sqlite') {
  const handle = new Database(filename)
  const database = new Kysely<Tables>({ dialect: new SqliteDialect({ database: handle }) })
  const knex = knexOn(handle)
  await createAuthTables(knex)
  await database.schema
    .createTable('companies')
    .ifNotExists()
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('owner', 'text', (column) => column.notNull().references('auth_users.id'))
    .execute()

  const store = createKnexStore({ knex })
  const auth = createAuthRouter({
    store,
    settings: { jwtSecret: process.env.AUTH_JWT_SECRET ?? '', publicUrl: 'http://localhost:3000', autoActivate: true },
  })
  await auth.ready() // rejects if a table is wrong

  async function signUp(email: string, password: string, company: string): Promise<string> {
    const { joined, owner } = await database.transaction().execute(async (trx) => {
      const joined = store.join(kyselyRunner(trx, { dialect: 'sqlite', CompiledQuery }))
      try {
        const [{ id: owner }] = await auth.service.using(joined.store).signUp({ email, password })
        const taken = await trx.selectFrom('companies').select('name').where('name', '=', company).executeTakeFirst()
        if (taken) throw new errors.ConflictError() // the rollback also removes the new account
        await trx.insertInto('companies').values({ name: company, owner }).execute()
        return { joined, owner }
      } catch (error) {
        joined.rolledBack() // from here on doorward sends nothing
        throw error
      }
    })
    joined.committed() // now the events are emitted and the mails are sent
    return owner
  }

  auth.events.on('signup', ({ userId }) => console.log(`Welcome, ${userId}`))
  const app = express()
  app.use('/auth', auth)
  app.post('/companies', express.json(), async (request, response, next) => {
    try {
      const { email, password, company } = request.body ?? {}
      if (![email, password, company].every((given) => typeof given === 'string')) throw new errors.ValidationError()
      response.status(201).json({ owner: await signUp(email, password, company) })
    } catch (error) {
      next(error)
    }
  })
  app.use(errorHandler())
  return app.listen(port, '127.0.0.1').on('close', () => handle.close())
}

if (process.argv[1] === __filename) start()
