import Joi from 'joi'
import type { Knex } from 'knex'
import { type AuthRouterOptions, createAuthTables, createKnexStore, type HostTables, type InsertedUser } from '../../src'

/** The users table of an app: a first name that has to be there, a role, and columns that people may not write. */
export async function createMembers(knex: Knex): Promise<void> {
  await knex.schema.createTable('members', (table) => {
    if (knex.client.config.client === 'mysql2') table.collate('utf8mb4_nopad_bin')
    table.string('id', 36).primary()
    table.string('email', 320).notNullable().unique()
    for (const name of ['hashed_password', 'name', 'totp_secret']) table.string(name, 255)
    table.boolean('is_active').notNullable()
    table.integer('totp_last_step')
    for (const name of [
      'created_at',
      'updated_at',
      'last_login_at',
      'totp_enabled_at',
      'email_verified_at',
      'activated_at',
      'password_set_at',
    ])
      table.string(name, 24)
    table.string('role', 20).notNullable()
    table.string('first_name', 50).notNullable()
    table.string('phone', 30)
    table.boolean('wants_news')
    table.string('plan', 20).notNullable().defaultTo('free')
    table.string('stripe_id', 40)
  })
  await createAuthTables(knex, { users: { table: 'members' } })
  await knex.schema.createTable('carts', (table) => {
    table.string('owner', 36)
  })
}

export const members = {
  table: 'members',
  instants: 'iso',
  columns: { isAdmin: { column: 'role', admin: 'admin', others: 'member' } },
  fields: {
    firstName: 'first_name',
    phone: 'phone',
    wantsNews: { column: 'wants_news', type: 'boolean' },
    plan: { column: 'plan', readOnly: true },
    stripeId: { column: 'stripe_id', readOnly: true, private: true },
  },
  insertDefaults: ({ by, profile }: InsertedUser) => ({
    first_name: profile?.name ?? 'New',
    stripe_id: by === 'provider' ? 'cus_of_provider' : 'cus_secret',
  }),
} satisfies HostTables['users']

export const memberSchema = Joi.object({
  firstName: Joi.string().min(1).max(50).required(),
  phone: Joi.string()
    .pattern(/^\+\d+$/)
    .allow(null),
  wantsNews: Joi.boolean(),
  terms: Joi.boolean().valid(true).required(),
})

export function memberOptions(
  knex: Knex,
  changes: Partial<AuthRouterOptions> = {},
): Partial<AuthRouterOptions> & Pick<AuthRouterOptions, 'store'> {
  return { store: createKnexStore({ knex, users: members }), signup: { schema: memberSchema }, ...changes }
}
