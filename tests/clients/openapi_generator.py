"""Uses the Python client that openapi-generator makes of the OpenAPI document with a server, of which SVC_URL and SVC_KEY
tell. Its models are strict."""

import os

import openapi_client as api

configuration = api.Configuration(host=f"{os.environ['SVC_URL']}/api/v1", access_token=os.environ["SVC_KEY"])
with api.ApiClient(configuration) as client:
    email, url = "a..b@example.com", "http://127.0.0.1:9/{id}"
    contacts = api.ContactsApi(client)
    created = contacts.create_contact(contact_create=api.ContactCreate(email=email, first_name="Ada"))
    assert created.data.email == email, created
    page = contacts.list_contacts(limit=1)
    assert [contact.id for contact in page.data] == [created.data.id] and page.next_cursor is not None, page
    wanted = api.WebhookCreate.from_dict({"url": url, "events": ["contact.created"]})
    webhooks = api.WebhooksApi(client)
    assert webhooks.create_webhook(webhook_create=wanted).data.url == url
    for records in (
        api.InvoicesApi(client).list_invoices(limit=200),
        api.BookingsApi(client).list_bookings(limit=200),
        api.QuotesApi(client).list_quotes(limit=200),
        api.JobsApi(client).list_jobs(limit=200),
        webhooks.list_webhooks(limit=200),
    ):
        assert records.data, records
