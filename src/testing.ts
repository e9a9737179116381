export {
  type Authorization,
  answer,
  type CodeOptions,
  type FakeEndpoint,
  type FakeHandler,
  type FakeProfile,
  type FakeProvider,
  type FakeRequest,
  startFakeProvider,
} from './testing/fake-provider'
export { type LoginAsOptions, loginAs, openSessionAs, type SignedIn, type SignedInSession, type WhichUser } from './testing/login-as'
export { linkTokenOf, type Mailbox, mailbox, type WantedMail } from './testing/mailbox'
export { type StoreCase, type StoreContractOptions, storeContract } from './testing/store-contract'
export { type TestClock, testClock } from './testing/test-clock'
