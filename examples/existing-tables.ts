/**
 * Accounts in tables that you already have. The sign-up runs inside your transaction: the app creates a person and their team together, or
 * creates neither of them.
 *
 *   NODE_ENV=development AUTH_JWT_SECRET=$(openssl rand -base64 48) npx tsx existing-tables.ts
 *   curl -d '{"email":"ana@example.com","password":"three quiet green rivers","team":"rivers"}' \
 *     -H 'content-type: application/json' localhost:3000/teams
 */
import { createAuthRouter, createAuthTables, createKnexStore, errorHandler, errors, type HostTables } from 'doorward'
import express from 'express'
import knex, { type Knex } from 'knex'

/** `people` is your table, with integer keys. `false` means that the table has no column for a field. */
const tables = {
  users: {
    table: 'people',
    ids: 'integer',
    columns: {
      id: 'person_id',
      email: 'mail',
      hashedPassword: 'password_hash',
      isActive: 'enabled',
      isAdmin: false,
      totpSecret: false,
      totpEnabledAt: false,
      totpLastStep: false,
    },
  },
} satisfies HostTables

async function createHostTables(database: Knex) {
  if (await database.schema.hasTable('people')) return
  await database.schema.createTable('people', (table) => {
    table.increments('person_id')
    table.string('mail', 320).notNullable().unique()
    table.text('password_hash').notNullable()
    table.text('name')
    table.boolean('enabled').notNullable()
    for (const name of ['created_at', 'updated_at']) table.bigInteger(name).notNullable() // milliseconds: SQLite has no type for a time
    for (const name of ['last_login_at', 'email_verified_at', 'activated_at', 'password_set_at']) table.bigInteger(name)
  })
  await database.schema.createTable('teams', (table) => {
    table.string('name').primary()
    table.integer('owner').notNullable().references('people.person_id')
  })
}

export async function start(port = 3000, filename = 'app.sqlite') {
  const database = knex({ client: 'better-sqlite3', connection: { filename }, useNullAsDefault: true })
  await createHostTables(database)
  await createAuthTables(database, tables) // creates the other tables, which refer to people.person_id
  const store = createKnexStore({ knex: database, ...tables })
  const auth = createAuthRouter({
    store,
    settings: { jwtSecret: process.env.AUTH_JWT_SECRET ?? '', publicUrl: 'http://localhost:3000' }, // mailed links begin with this URL
  })
  await auth.ready() // rejects if a table is wrong

  const app = express()
  app.use('/auth', auth)
  app.post('/teams', express.json(), async (request, response, next) => {
    try {
      const { email, password, team } = request.body ?? {}
      if (![email, password, team].every((given) => typeof given === 'string')) throw new errors.ValidationError()
      const link = await database.transaction(async (trx) => {
        const [person, activation] = await auth.service.using(store.using(trx)).signUp({ email, password })
        const taken = await trx('teams').where({ name: team }).first()
        if (taken) throw new errors.ConflictError() // the rollback also removes the new account
        await trx('teams').insert({ name: team, owner: person.id })
        return activation
      })
      // A person who can read the link counts as the owner of the address. So in production a `mailer` sends the link, and no response
      // contains it.
      response.status(201).json(process.env.NODE_ENV === 'development' || process.env.NODE_ENV === 'test' ? link : {})
    } catch (error) {
      next(error)
    }
  })
  app.use(errorHandler())
  return app.listen(port, '127.0.0.1').on('close', () => database.destroy())
}

if (process.argv[1] === __filename) start()
