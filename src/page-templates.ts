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
  'link_invalid',
  'link_refused',
  'address_taken',
  'too_many',
  'trouble',
] as const

export type PageName = (typeof pageNames)[number]

/** What a page is made of. A link's page holds no token: its form posts to the address it came from, with no `action`. */
export interface PageInput {
  readonly page: PageName
  readonly locale: keyof LocalizedText
  /** Why the form is shown again, in the reader's language. */
  readonly problem: string | null
  /** `settings.loginUrl`. */
  readonly loginUrl: string | null
  /** Of `second_factor` alone: where its form posts `mfa_token` and `code` to; null on every other page. */
  readonly challenge: { readonly action: string; readonly mfaToken: string } | null
  /** For the `nonce` of a `<style>`: the page's policy lets nothing else through. */
  readonly styleNonce: string
}

/** Page -> a whole HTML document. The form of `password_reset` has the fields `new_password` and `confirm_password`. */
export type PageTemplates = { readonly [Name in PageName]?: (page: PageInput) => string }
