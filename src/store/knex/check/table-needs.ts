export interface TableNeeds {
  /** In characters. Null: unknown. */
  readonly hashLength: number | null
  /** In characters. Null: the second factor is off. */
  readonly secretLength: number | null
  readonly providers: readonly string[] | null
  /** Accounts also begin without a sign-up, for example by a provider. Then nobody enters the host's fields. */
  readonly makesAccountsOtherwise: boolean
  readonly recoveryCodes: boolean
  readonly passkeys: boolean
  readonly emailLogins: boolean
  /** Sign-ups store passkeys as payloads. Only the payload of a free address is stored, so a refusal would reveal that. */
  readonly pendingPasskeys: boolean
  readonly trustedDevices: boolean
  readonly invitations: boolean
  readonly approval: boolean
  readonly outbox: boolean
  readonly leases: boolean
  /** In characters. */
  readonly payloadLength: number
  readonly linksByVerifiedEmail: boolean
}
