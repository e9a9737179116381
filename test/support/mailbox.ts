import { linkTokenOf, type Mailbox, mailbox } from '../../src/testing/mailbox'

export { linkTokenOf as tokenOf, type Mailbox, mailbox }

/** Where a host's pages would be. */
export const linkTemplates = {
  activationUrlTemplate: 'https://app.example.test/activate/{token}',
  passwordResetUrlTemplate: 'https://app.example.test/reset/{token}',
  emailVerificationUrlTemplate: 'https://app.example.test/verify/{token}',
  emailChangeUrlTemplate: 'https://app.example.test/change/{token}',
}
