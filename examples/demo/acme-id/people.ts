/** Somebody with an account at Acme ID. The id is what Acme ID hands out as `sub`: stable, and meaningless elsewhere. */
export interface Person {
  readonly id: string
  readonly name: string
  readonly email: string
}

/** Made up, all three. example.com belongs to nobody (RFC 2606). */
export const people: readonly Person[] = [
  { id: 'acme-4711', name: 'Maya Okafor', email: 'maya@example.com' },
  { id: 'acme-4712', name: 'Jonas Lindqvist', email: 'jonas@example.com' },
  { id: 'acme-4713', name: 'Lúcia Ferreira', email: 'lucia@example.com' },
]

export function findPerson(id: unknown): Person | undefined {
  return people.find((person) => person.id === id)
}
