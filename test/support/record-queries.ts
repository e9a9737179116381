import type { Knex } from 'knex'

/** Every statement as it goes over the wire from now on, BEGIN and COMMIT included. */
export function recordQueries(knex: Knex): { stop(): string[] } {
  const statements: string[] = []
  const listener = ({ sql }: { sql: string }) => statements.push(sql)
  knex.on('query', listener)
  return {
    stop() {
      knex.removeListener('query', listener)
      return statements
    },
  }
}
