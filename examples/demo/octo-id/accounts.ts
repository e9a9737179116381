/** An account at Octo ID. As at GitHub, the numeric id never changes, the login can change, and the email may be private. */
export interface OctoAccount {
  readonly id: number
  readonly login: string
  readonly name: string
  readonly email: string | null
}

/** Invented accounts, as at Acme ID. Octo ID does not say whether Maya's address is verified. */
export const accounts: readonly OctoAccount[] = [
  { id: 90210, login: 'maya-codes', name: 'Maya Okafor', email: 'maya@example.com' },
  { id: 90211, login: 'jonas-l', name: 'Jonas Lindqvist', email: null },
  { id: 90212, login: 'night-builds', name: 'Night Builds', email: null },
]
