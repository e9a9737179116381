/** A person with an account at Acme ID. The id becomes the claim `sub`. The id never changes, and has no meaning outside Acme ID. */
export interface Person {
  readonly id: string
  readonly name: string
  readonly email: string
}

/** Three invented people. Nobody owns the domain example.com (RFC 2606). */
export const people: readonly Person[] = [
  { id: 'acme-4711', name: 'Maya Okafor', email: 'maya@example.com' },
  { id: 'acme-4712', name: 'Jonas Lindqvist', email: 'jonas@example.com' },
  { id: 'acme-4713', name: 'Lúcia Ferreira', email: 'lucia@example.com' },
]

export function findPerson(id: unknown): Person | undefined {
  return people.find((person) => person.id === id)
}
