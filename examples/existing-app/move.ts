/**
 * Makes the shop's users table fit for doorward. Ids, foreign keys and bcrypt hashes stay as they are. In a real app this is a migration.
 *
 *   npx tsx examples/existing-app/move.ts
 */
import knex, { type Knex } from 'knex'

export async function move(db: Knex): Promise<void> {
  if (await db.schema.hasColumn('users', 'is_active')) return
  await db.schema.alterTable('users', (table) => {
    table.text('password_hash').notNullable().alter() // argon2id needs 97 characters, varchar(60) is for bcrypt
    table.boolean('is_active').notNullable().defaultTo(true)
    for (const column of ['updated_at', 'activated_at', 'email_verified_at', 'last_login_at']) table.timestamp(column).nullable()
  })
  // People who are there already were active: without activated_at they would count as people who never followed their mail.
  await db('users').update({ email: db.raw('lower(email)'), updated_at: db.ref('created_at'), activated_at: db.ref('created_at') })
}

if (process.argv[1] === __filename) {
  const db = knex({ client: 'better-sqlite3', connection: { filename: 'shop.sqlite' }, useNullAsDefault: true })
  move(db).finally(() => db.destroy())
}
