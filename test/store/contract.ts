// The contract ships as `doorward/testing`; the tests of the knex store use its records too.
export * from '../../src/testing/records'
export { storeContract } from '../../src/testing/store-contract'
