/**
 * Changes the shop's users table for doorward. Ids, foreign keys and bcrypt hashes do not change. In a real app, this code is a migration.
 *
 *   npx tsx examples/existing-app/move.ts
 */
import knex, { type Knex } from 'knex'

export async function move(db: Knex): Promise<void> {
  if (await db.schema.hasColumn('users', 'is_active')) return
  await db.schema.alterTable('users', (table) => {
    table.text('password_hash').notNullable().alter() // an argon2id hash has 97 characters, and varchar(60) is for bcrypt
    table.boolean('is_active').notNullable().defaultTo(true)
    for (const column of ['updated_at', 'activated_at', 'email_verified_at', 'last_login_at']) table.timestamp(column).nullable()
  })
  // The existing accounts were activated. Without activated_at, a deactivated account would count as an account that was never activated.
  await db('users').update({ email: db.raw('lower(email)'), updated_at: db.ref('created_at'), activated_at: db.ref('created_at') })
}

if (process.argv[1] === __filename) {
  const db = knex({ client: 'better-sqlite3', connection: { filename: 'shop.sqlite' }, useNullAsDefault: true })
  move(db).finally(() => db.destroy())
}
