/** A mail of a request without a session: counted before it is decided, so that many requests at once cannot pass the limit. */
export interface MailPlace {
  /** Call it for a mail to an address without a verified account: it stays counted. Returns how to take it back. */
  use(): () => Promise<void>
}
