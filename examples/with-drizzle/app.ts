/**
 * An app with Drizzle on PostgreSQL. doorward uses the pool of the app, and a sign-up is committed together with the row of the company, or
 * neither is.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) DATABASE_URL=postgres://localhost/app npx tsx examples/with-drizzle/app.ts
 *   curl -d '{"email":"ana@example.com","password":"three quiet green rivers","company":"Rivers"}' \
 *     -H 'content-type: application/json' localhost:3000/companies
 */
import { createAuthRouter, createAuthTables, createKnexStore, drizzleRunner, errorHandler, errors, knexOn } from 'doorward'
import { eq, sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { pgTable, text, uuid } from 'drizzle-orm/pg-core'
import express from 'express'
import { Pool } from 'pg'

const companies = pgTable('companies', { name: text().primaryKey(), owner: uuid().notNull() })

export async function start(port = 3000, pool = new Pool({ connectionString: process.env.DATABASE_URL })) {
  const database = drizzle(pool)
  const knex = knexOn(pool)
  await createAuthTables(knex)
  await database.execute(sql`create table if not exists companies (name text primary key, owner uuid not null references auth_users)`)

  const store = createKnexStore({ knex })
  const auth = createAuthRouter({
    store,
    settings: { jwtSecret: process.env.AUTH_JWT_SECRET ?? '', publicUrl: 'http://localhost:3000', autoActivate: true },
  })
  await auth.ready() // rejects if a table is wrong

  async function signUp(email: string, password: string, company: string): Promise<string> {
    const { joined, owner } = await database.transaction(async (tx) => {
      const joined = store.join(drizzleRunner(tx, { dialect: 'postgresql', sql }))
      try {
        const [{ id: owner }] = await auth.service.using(joined.store).signUp({ email, password })
        const [taken] = await tx.select().from(companies).where(eq(companies.name, company))
        if (taken) throw new errors.ConflictError() // the rollback also removes the new account
        await tx.insert(companies).values({ name: company, owner })
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
  return app.listen(port, '127.0.0.1').on('close', () => pool.end())
}

if (process.argv[1] === __filename) start()
