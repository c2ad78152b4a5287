module localhost/pause

go 1.26
