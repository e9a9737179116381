import type { LocalizedText } from './errors'

/** The pages behind mailed links and after a provider: a form, what it came to, and why it did not. */
export const pageNames = [
  'activate',
  'activated',
  'password_reset',
  'password_changed',
  'email_verify',
  'email_verified',
  'email_change',
  'email_changed',
  'second_factor',
  'challenge_over',
  'undo',
  'undone',
  'undone_without_address',
  'link_invalid',
  'link_refused',
  'address_taken',
  'too_many',
  'trouble',
] as const

export type PageName = (typeof pageNames)[number]

/** What a page is made of. A link's page holds no token: its form posts to the address it came from, with no `action`. */
export interface PageInput {
  /** Which page it is. */
  readonly page: PageName
  /** The reader's language. */
  readonly locale: keyof LocalizedText
  /** Why the form is shown again, in the reader's language. */
  readonly problem: string | null
  /** Of `undo` and `undone`: what can be used to sign in afterwards, in the reader's language. Empty on every other page. */
  readonly items: readonly string[]
  /** `settings.loginUrl`. */
  readonly loginUrl: string | null
  /** Of `second_factor` alone: where its form posts `mfa_token` and `code` to; null on every other page. */
  readonly challenge: {
    /** Where the form posts to. */
    readonly action: string
    /** Goes along as `mfa_token`. */
    readonly mfaToken: string
  } | null
  /**
   * Of the pages `activate`, `email_verify` and `email_change`: the form has a field `password` for the password of the account, because
   * nothing else tells that its owner clicks. `canSkip`: and a second button, name `forgot`, value `1`, for who does not know it.
   */
  readonly password: {
    /** True: the form also has the second button. */
    readonly canSkip: boolean
  } | null
  /** For the `nonce` of a `<style>`: the page's policy lets nothing else through. */
  readonly styleNonce: string
}

/** Page -> a whole HTML document. The form of `password_reset` has the fields `new_password` and `confirm_password`. */
export type PageTemplates = { readonly [Name in PageName]?: (page: PageInput) => string }
