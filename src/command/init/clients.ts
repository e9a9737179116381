/** The drivers that doorward works with, by knex's name of the client, which is the package's, too. */
export const clients = ['better-sqlite3', 'pg', 'mysql2'] as const

export type Client = (typeof clients)[number]

/** Null: doorward does not work with it. */
export function clientOf(named: unknown): Client | null {
  const name = named === 'postgres' || named === 'postgresql' ? 'pg' : named // as knex reads them
  return clients.find((client) => client === name) ?? null
}
