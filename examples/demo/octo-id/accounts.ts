/** An account at Octo ID. As at GitHub the numeric id is what stays, the login can be changed, and the email may be private. */
export interface OctoAccount {
  readonly id: number
  readonly login: string
  readonly name: string
  readonly email: string | null
}

/** Made up, like everybody at Acme ID. Whether Maya's address is verified Octo ID does not say. */
export const accounts: readonly OctoAccount[] = [
  { id: 90210, login: 'maya-codes', name: 'Maya Okafor', email: 'maya@example.com' },
  { id: 90211, login: 'jonas-l', name: 'Jonas Lindqvist', email: null },
  { id: 90212, login: 'night-builds', name: 'Night Builds', email: null },
]
