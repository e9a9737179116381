/**
 * An app with Prisma on PostgreSQL. doorward uses the pool of the app, and a sign-up is committed together with the row of the company, or
 * neither is.
 *
 *   export NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) DATABASE_URL=postgres://localhost/app
 *   npx prisma generate --schema examples/with-prisma/schema.prisma && npx tsx examples/with-prisma/app.ts
 *   curl -d '{"email":"ana@example.com","password":"three quiet green rivers","company":"Rivers"}' \
 *     -H 'content-type: application/json' localhost:3000/companies
 */
import { PrismaPg } from '@prisma/adapter-pg'
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler, errors, knexOn, prismaRunner } from 'doorward'
import express from 'express'
import { Pool } from 'pg'
import { PrismaClient } from './generated/client'

export async function start(port = 3000, pool = new Pool({ connectionString: process.env.DATABASE_URL }), schema = 'public') {
  const prisma = new PrismaClient({ adapter: new PrismaPg(pool, { schema }) })
  const knex = knexOn(pool)
  await createAuthTables(knex)
  await pool.query('create table if not exists companies (name text primary key, owner uuid not null references auth_users)')

  const store = createKnexStore({ knex })
  const auth = createAuthRouter({
    store,
    settings: { jwtSecret: process.env.AUTH_JWT_SECRET ?? '', publicUrl: 'http://localhost:3000', autoActivate: true },
  })
  await auth.ready() // rejects if a table is wrong

  async function signUp(email: string, password: string, company: string): Promise<string> {
    const { joined, owner } = await prisma.$transaction(async (tx) => {
      const joined = store.join(prismaRunner(tx, { dialect: 'postgresql' }))
      try {
        const [{ id: owner }] = await auth.service.using(joined.store).signUp({ email, password })
        const taken = await tx.company.findUnique({ where: { name: company } })
        if (taken) throw new errors.ConflictError() // the rollback also removes the new account
        await tx.company.create({ data: { name: company, owner } })
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
  return app.listen(port, '127.0.0.1').on('close', () => prisma.$disconnect().then(() => pool.end()))
}

if (process.argv[1] === __filename) start()
